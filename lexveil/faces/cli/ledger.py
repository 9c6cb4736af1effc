"""`lexveil ledger`, which shows, verifies and administers the budget ledger: the epsilon that each
subject (the person behind the texts) has spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lexveil.base.logs import logger
from lexveil.faces.cli.options import Count, Files, Json, Stream, actions, exclusive
from lexveil.faces.cli.output import anywhere, show

LOG = logger(__name__)

if TYPE_CHECKING:
    from lexveil.io.config import LedgerParams
    from lexveil.release.ledger.ledger import Ledger

ledger = actions(
    "ledger",
    """Show, verify and administer the budget ledger: what each subject has spent over all releases.

    Every release is charged to the subjects of its documents before its noise is drawn. No subject
    exceeds the cap of lexveil.toml (ledger.cap) or, without one, the ledger's own cap. The folder
    of the ledger is ledger.folder in lexveil.toml. Outside of projects, it is `ledger` in your data
    folder, and standard error names it. Subjects are stored as salted hashes of their keys.
    docs/explanation/ledger.md says what the ledger guarantees, and what to back up.

        lexveil ledger show --top 10
        lexveil ledger show --subject user-1234
        lexveil ledger verify --record out.jsonl.record.json
        lexveil ledger verify --since verified.json
        lexveil ledger export balances.parquet
        lexveil ledger cap 200 --because "decided in May"
        lexveil ledger accept --because "disk lost; restored Monday's backup"
    """,
)
WHICH = exclusive()
Reason = Annotated[str, Parameter(metavar="TEXT", help="reason, which is recorded in the ledger")]


@ledger.command(name="show")
def show_balances(
    *,
    subject: Annotated[str | None, Parameter(metavar="KEY", group=WHICH)] = None,
    top: Annotated[Count | None, Parameter(group=WHICH)] = None,
    json: Json = False,
) -> None:
    """Show balances and releases.

    Prints balances, the cap, and the newest releases with their state. Before that, it recovers
    releases whose process was killed: it completes a release whose files were all written, and
    rolls back any other.

    Args:
        subject: show one subject, by its name as in the documents
        top: also show the N largest balances
    """
    from lexveil.release.ledger import statement

    with _opened() as (balances, params):
        if subject is not None:
            from lexveil.core.accounting.subject_keys import subject_key

            spending = statement.subject(balances, subject_key(subject), _cap(balances, params.cap))
            show(asdict(spending) if json else spending, json, statement.subject_as_text)
        else:
            summary = statement.summary(balances, _cap(balances, params.cap), top or 0)
            show(
                asdict(summary) if json else summary,
                json,
                lambda summary: statement.as_text(summary, top or 0),
            )


@ledger.command
def verify(
    *,
    record: Annotated[tuple[Path, ...], Files] = (),
    since: Annotated[Path | None, Parameter(name="--since", metavar="ANCHOR")] = None,
    json: Json = False,
) -> int:
    """Verify the whole budget ledger by recomputing it. The exit code is 1 if anything is wrong.

    Recomputes the hash chain of log entries, digests, balances, states and caps, and names each
    wrong entry. Changes nothing, and works on a copy of the database without the salt.

    Args:
        record: privacy records whose releases must be in the ledger; this detects a ledger that was
            truncated or replaced since
        since: a copy of the ledger's anchor from a time when everything was verified; only later
            entries are computed again
    """
    records = [path.absolute() for path in record]
    since = since and since.absolute()
    from lexveil.release.ledger import verification

    params = _ledger()
    checked = verification.verify(params.folder, records, address=params.database, since=since)
    show(checked.as_json() if json else checked, json, verification.as_text)
    return 0 if checked.holds else 1


@ledger.command
def export(output: Annotated[Stream, Parameter(name="OUT")], /) -> None:
    """Write the epsilon that each subject has spent, with hashed keys, as CSV or Parquet.

    Args:
        output: file to write, .csv or .parquet; - is CSV on standard output
    """
    target = output if output == "-" else Path(output).absolute()
    from lexveil.release.ledger import statement

    with _opened() as (balances, _):
        n_subjects = statement.export(balances, target)
    LOG.info(f"{n_subjects:,} subjects written")


@ledger.command
def accept(*, because: Reason) -> None:
    """Accept a ledger that does not match its anchor, or that was edited.

    Use this command after a ledger was lost, restored from an older copy, replaced or edited, or
    after its anchor was lost. It does not bring back the ε that the ledger no longer contains. The
    reason becomes an entry of the chain, balances become the sums of their charges, and the anchor
    is written anew.
    """
    from lexveil.release.ledger.ledger import Ledger
    from lexveil.release.ledger.stores import store_of

    params = _ledger()
    is_there = store_of(params.folder, params.database).exists()
    is_anchored = Path(params.anchor).exists()
    opened = Ledger.open(
        params.folder,
        None if is_there else params.keys,
        make=is_anchored and not is_there,
        anchor=params.anchor,
        accepts=True,
        address=params.database,
    )
    with opened as balances:
        n_wrong = balances.accept(because)
        _say_recovered(balances)
    LOG.info(f"accepted, and the reason is recorded; {n_wrong:,} balances corrected")


@ledger.command
def cap(value: Annotated[str, Parameter(name="N")], /, *, because: Reason) -> None:
    """Set the budget cap that the ledger itself stores, also before the first release;
    lexveil.toml: ledger.cap takes precedence.

    Without a cap, the first release sets the cap to the amount that ten releases of a text of
    ordinary length may spend, and prints that amount.

    Args:
        value: epsilon of one subject over all releases, or unlimited
    """
    from lexveil.base.errors import RequestError

    try:
        number = None if value == "unlimited" else float(value)
    except ValueError:
        raise RequestError(
            f"{value} is not a cap; give a number of epsilon, or unlimited"
        ) from None
    with _opened(make=True) as (balances, params):
        balances.set_cap(number, because)
    limit = "unlimited" if number is None else f"{number:g} epsilon per subject"
    LOG.info(f"the ledger's cap is {limit} from now on, over all releases")
    if params.cap is not None:
        LOG.info(
            f"lexveil.toml: ledger.cap is {params.cap} and takes precedence over the "
            "ledger's own cap"
        )


def _ledger() -> LedgerParams:
    """Return the budget ledger's settings for the project that contains the current folder. Outside
    of projects, return the settings of the user's own ledger, and print its location on standard
    error.
    """
    anywhere()
    from lexveil.io.artifacts.project import Project
    from lexveil.release.charge import ledger_of

    place = Project.find()
    params = ledger_of(place)
    if not place.is_project:
        LOG.info(f"this folder belongs to no project; using your own ledger, {params.folder}")
    return params


@contextmanager
def _opened(*, make: bool = False) -> Iterator[tuple[Ledger, LedgerParams]]:
    """Yield the opened budget ledger and its settings. Opening it completes or rolls back killed
    releases.
    """
    from lexveil.release.ledger.ledger import Ledger

    params = _ledger()
    keys = params.keys if make else None
    opened = Ledger.open(
        params.folder, keys, make=make, anchor=params.anchor, address=params.database
    )
    with opened as balances:
        _say_recovered(balances)
        yield balances, params


def _cap(balances: Ledger, configured: float | str | None) -> float | None:
    """Return the budget cap of a subject in new releases, or None for no limit."""
    if configured is None:
        return balances.cap()
    return configured if isinstance(configured, float) else None


def _say_recovered(balances: Ledger) -> None:
    from lexveil.release.ledger import statement

    for line in [
        *statement.recovered_as_text(balances.recovered),
        *([balances.refusal] if balances.refusal else []),
    ]:
        LOG.info(line)
