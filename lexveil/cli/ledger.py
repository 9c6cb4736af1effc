"""`lexveil ledger`: what each subject has spent."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lexveil.cli.options import Count, Json, Stream, actions, exclusive, option
from lexveil.cli.output import in_project, show

if TYPE_CHECKING:
    from lexveil.ledger.ledger import Ledger

ledger = actions(
    "ledger",
    """What each subject has spent over all releases.

    The ledger of epsilon: every release is charged to the subjects of its documents, and none gets beyond the
    cap of params.yaml: release. Its folder is named there. Subjects are salted hashes, found by their keys.
    docs/explanation/ledger.md says what it guarantees, and what to keep copies of.

      lexveil ledger show --top 10
      lexveil ledger show --subject user-1234
      lexveil ledger verify --record out.jsonl.record.json
      lexveil ledger export balances.parquet
    """,
)
WHICH = exclusive("which")


@ledger.command(name="show")
def show_balances(
    *,
    subject: Annotated[
        str | None, option("one subject, by its key as the documents have it", "KEY", group=WHICH)
    ] = None,
    top: Annotated[Count | None, option("also the N largest balances", group=WHICH)] = None,
    json: Json = False,
) -> int:
    """Balances and releases; completes or undoes releases whose process was killed.

    Balances, the cap, and the newest releases with their state. First, releases whose process was killed are
    completed if all was written, else undone; those of living processes are left alone.
    """
    in_project()
    from lexveil.config import load_params
    from lexveil.ledger import statement
    from lexveil.ledger.ledger import Ledger

    params = load_params().release
    with Ledger.open(params.ledger, None, make=False) as balances:
        _say_recovered(balances)
        if subject is not None:
            spending = statement.subject(balances, subject, params.cap)
            show(asdict(spending) if json else spending, json, statement.subject_as_text)
        else:
            summary = statement.summary(balances, params.cap, top or 0)
            show(asdict(summary) if json else summary, json, lambda summary: statement.as_text(summary, top or 0))
    return 0


@ledger.command
def verify(
    *,
    record: Annotated[
        tuple[Path, ...],
        option(
            "privacy records whose releases must be in it: finds a ledger that was truncated or replaced since",
            "FILE …",
            consume_multiple=(1, None),
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Compute everything again; exit code 1 if anything does not hold.

    Computes the chain of entries, digests, balances, states and caps again and says which entry is wrong.
    Changes nothing, and works on a copy of the database without the salt.
    """
    records = [path.absolute() for path in record]
    in_project()
    from lexveil.config import load_params
    from lexveil.ledger import verification

    checked = verification.verify(load_params().release.ledger, records)
    show(checked.as_json() if json else checked, json, verification.as_text)
    return 0 if checked.holds else 1


@ledger.command
def export(
    output: Annotated[Stream, option("a file.csv or file.parquet; - is CSV on standard output", name="OUT")], /
) -> int:
    """What each subject has spent, as CSV or Parquet, with hashed keys."""
    target = output if output == "-" else Path(output).absolute()
    in_project()
    from lexveil.config import load_params
    from lexveil.ledger import statement
    from lexveil.ledger.ledger import Ledger

    with Ledger.open(load_params().release.ledger, None, make=False) as balances:
        _say_recovered(balances)
        n_subjects = statement.export(balances, target)
    print(f"{n_subjects:,} subjects written", file=sys.stderr)
    return 0


def _say_recovered(balances: Ledger) -> None:
    from lexveil.ledger import statement

    for line in statement.recovered_as_text(balances.recovered):
        print(line, file=sys.stderr)
