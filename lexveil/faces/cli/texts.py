"""The verbs for texts: `lexveil privatize`, `inspect`, `explore`, `calibrate` and `audit`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lexveil.auditing.request import AuditRequest
from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.faces.cli.options import (
    CHOSEN,
    STRATEGIES,
    ChosenModel,
    Json,
    Looking,
    Port,
    Rewriting,
    Rows,
    Share,
    Stream,
    command_of,
    named_columns,
    options_of,
    requested,
    written,
)
from lexveil.faces.cli.output import anywhere, located, show
from lexveil.faces.cli.streams import say
from lexveil.io.formats.text_columns import SeveralTextColumnsError
from lexveil.io.request import BandName, FileRequest

LOG = logger(__name__)

NOT_PUBLISHED = "do not publish the output, because nothing is guaranteed"

if TYPE_CHECKING:
    from lexveil.core.accounting.operator_report import OperatorReport
    from lexveil.release.adapters.files import PrivatizedFiles


def privatize(
    source: Annotated[Stream, Parameter(name="IN")],
    /,
    *,
    output: Annotated[Stream | None, Parameter(metavar="OUT", alias="-o")] = None,
    preview: Rows | None = None,
    how: Rewriting = Rewriting(),  # frozen  # noqa: B008
    words: ChosenModel = CHOSEN,
    json: Annotated[Json, Parameter(help="machine-readable summary")] = False,
) -> int:
    r"""Rewrite a file or a folder of texts.

    Reads JSONL, CSV, TSV, text (each also .gz, .zst, .bz2 or .xz), Parquet, or a query of
    PostgreSQL or SQLite, rewrites the text columns, and leaves the other columns unchanged.
    Files and folders may lie in object storage (s3://, gs://, abfs://). A record next to the output
    states what was protected, what was not, and what was spent. The ledger (`lexveil ledger`)
    records the spending of each subject over all releases. The command works anywhere. Outside of
    projects it uses an installed model, and a ledger in your data folder. `lexveil inspect IN`
    shows the effects without rewriting.

        lexveil privatize tickets.csv -o out.csv
        lexveil privatize tickets.csv -o out.csv --protection strong --subject-column customer
        lexveil privatize letters.jsonl -o out.jsonl --mechanism tem --strategy S3
        lexveil privatize tickets.csv -o out.csv --text-column title --text-column body \
            --subject-column customer --protection strong
        lexveil privatize archive/ -o private/ --workers 8
        lexveil privatize letters.jsonl --preview 5
        lexveil privatize postgresql://localhost/crm --sql 'SELECT id, body AS text FROM tickets' \
            -o postgresql://localhost/crm --table tickets_private
        lexveil privatize s3://bucket/tickets/ -o s3://bucket/private/
        cat a.jsonl | lexveil privatize - -o - > b.jsonl

    Args:
        source: file or folder to rewrite; the address of a database; - is standard input
        output: file or folder to write, in the format of IN (for a database: NAME.parquet); the
            address of a database; or - for standard output, without record and token log
        preview: instead of -o, show source and output of the first N rows on the terminal, as an
            experiment; nothing is written or charged
    """
    if preview is not None:
        return _preview(source, preview, output, json, how, words.name)
    if output is None:
        raise RequestError(
            "the following arguments are required: --output, or --preview to only look"
        )
    in_file = located(source)
    out_file = located(output)
    request = requested(how, FileRequest)
    anywhere()
    from lexveil.base.runtime.arrow import keep_pandas_out
    from lexveil.core.accounting.statement import statement
    from lexveil.release.adapters.files import privatize_file

    keep_pandas_out()
    with _asking(lambda columns: command_of(request, str(source), columns, words.name)):
        done = privatize_file(in_file, out_file, request, model=words.name)
    # standard output is the rewritten text in this case
    stream = sys.stderr if output == "-" else sys.stdout
    if json:
        show(done.record.to_dict(), as_json=True, stream=stream)
    else:
        say("\n".join(statement(done.record, done.operator, _files(done, output))), stream)
    return _exit_code(done.operator)


@contextlib.contextmanager
def _asking(command: Callable[[Sequence[str]], str]) -> Iterator[None]:
    """Extend the error that several columns could contain texts: add the command line that names
    all of these columns.
    """
    try:
        yield
    except SeveralTextColumnsError as error:
        if not error.shown:
            raise
        raise RequestError(
            f"{error.message}; `{command(error.shown)}` rewrites all of them"
        ) from None


def _files(done: PrivatizedFiles, output: str) -> list[str]:
    """Return lines that name the written files or the written table, and say who may see each."""
    from lexveil.base.runtime.objects import as_path
    from lexveil.io.formats.messages import shown

    if done.target is None:
        return [
            "no record is written next to standard output; --json prints the record in "
            "place of these lines"
        ]
    asked = as_path(output)
    lines = list[str]()
    out = shown(done.target.name if done.table else asked.with_name(done.target.name))
    record = f"{out}.record.json"
    words = f"{out}.statement.txt"
    is_release = done.record.mode == "release"
    if done.table is not None:
        published = "publish with the output" if is_release else NOT_PUBLISHED
        lines.append(
            f"table {done.table}, with a copy of its privacy record in the table lexveil_records"
        )
        lines.append(f"{published}: {record}, the privacy record, and {words}, its text version")
    else:
        published = "publish together" if is_release else NOT_PUBLISHED
        if done.target.name != asked.name:
            lines.append(f"the output has no guarantee, so its name is {out}")
        lines.append(
            f"{published}: {out}, its privacy record {record}, and {words}, the text "
            "version of the record for the recipients"
        )
    if done.operator is not None:
        secret = [f"{out}.operator.json", f"{out}.tokens.parquet"]
        costs = done.operator.ledger
        if costs is not None and costs.documents_withheld:
            secret.append(f"{out}.withheld.csv")
        lines.append(
            f"for you alone, because they are as secret as the source: {', '.join(secret)}"
        )
    return lines


def _exit_code(operator: OperatorReport | None) -> int:
    """Return the exit code of a rewriting: 1 if every row was withheld because all budgets are
    exhausted, and otherwise 0. Without this code a scheduled job would not notice that there is no
    output.
    """
    costs = None if operator is None else operator.ledger
    if costs is None or costs.documents_charged or not costs.documents_requested:
        return 0
    longest = ""
    if costs.longest_row is not None:
        longest = f" (which is enough for a row of {costs.longest_row:,} perturbed tokens)"
    LOG.warning(
        "lexveil privatize: all rows are withheld, because each row costs more than the "
        f"rest of its subject's cap of {costs.cap:g} epsilon{longest}; nothing was charged, "
        "and the output has no text. `lexveil ledger show` shows balances, and `lexveil "
        "ledger cap N --because TEXT` sets the cap"
    )
    return 1


def _preview(
    source: str, n_rows: int, output: str | None, json: bool, how: Rewriting, model: str | None
) -> int:
    """Print the first rows on the terminal, each with its source and its rewritten text, and return
    the exit code.
    """
    if output is not None:
        raise RequestError("--preview writes nothing; remove -o OUT or --preview")
    if written(how).get("mode") == "release":
        raise RequestError(
            "--preview draws an experiment, which charges no ledger; remove --mode release"
        )
    if not json and not sys.stdout.isatty():
        raise RequestError(
            "--preview shows source text on a terminal only, but --json is for a file or "
            "another program; remove one of them"
        )
    in_file = located(source)
    request = requested(how, FileRequest, mode="experiment")
    anywhere()
    from lexveil.release.looking.preview import preview

    with _asking(
        lambda columns: (
            f"lexveil privatize {quote(str(source))} --preview {n_rows} {named_columns(columns)}"
        )
    ):
        found = preview(in_file, n_rows, request, model=model)
    if json:
        show(found.to_dict(), as_json=True)
        return 0
    from lexveil.faces.cli.preview import show_preview

    show_preview(found)
    return 0


def inspect(
    source: Annotated[Stream, Parameter(name="IN")],
    /,
    *,
    how: Looking = Looking(),  # frozen  # noqa: B008
    words: ChosenModel = CHOSEN,
    show_examples: bool = False,
    json: Json = False,
) -> None:
    """Show what `lexveil privatize` would do with a file, without doing it.

    Reads a file or folder, and shows how many of its words the vocabulary has, what would be
    unprotected, how the budget would be spread, and how much would change. Writes and spends
    nothing. Works anywhere, and has the defaults of `lexveil privatize`.

        lexveil inspect tickets.csv
        lexveil inspect tickets.csv --protection strong --text-column body --show-examples
        lexveil inspect letters.jsonl --mechanism tem --strategy S3 --protection strong

    Args:
        source: file or folder to inspect; the address of a database; - is standard input
        show_examples: name the most frequent words that would be unprotected, and unknown words;
            these words are source text
    """
    file = located(source)
    anywhere()
    from lexveil.release.looking import inspect as inspection

    request = requested(how, FileRequest)
    if request.mechanism == "none":
        raise RequestError(
            "inspect: the mechanism or strategy `none` leaves texts unchanged; name a "
            "mechanism and a strategy, or neither"
        )
    with _asking(lambda columns: f"lexveil inspect {quote(str(source))} {named_columns(columns)}"):
        result = inspection.inspect(file, request, show_examples=show_examples, model=words.name)
    show(result.to_dict() if json else result, json, inspection.as_text)


def explore(
    source: Annotated[Stream | None, Parameter(name="IN")] = None,
    /,
    *,
    text_column: Annotated[str | None, Parameter(metavar="NAME")] = None,
    rows: Rows = 20,
    words: ChosenModel = CHOSEN,
    port: Port | None = None,
) -> int:
    """Serve a page that shows how texts are rewritten: tokens, draws, neighbours, and the guesses
    of an adversary.

    Prints the address of the page, which contains a secret token, and serves it at 127.0.0.1 until
    Ctrl-C. Nothing is sent elsewhere, and the page works offline. Its draws are experiments, so no
    ledger is charged. The page opens with public texts. Do not choose parameters by private texts,
    which the texts of IN may be, because the choice discloses something about them and no budget
    accounts for it. docs/how-to/explore.md describes the page.

        lexveil explore
        lexveil explore tickets.csv --text-column body

    Args:
        source: file or folder whose first rows can be opened in the page
        text_column: the column of IN to show (default: as in `lexveil privatize`)
        rows: number of rows of IN to list
        port: port to listen at (default: a free port)
    """
    from lexveil.faces.cli.service import require_libraries

    require_libraries()
    file = None if source is None else located(source)
    anywhere()
    from lexveil.faces.service.page.drawing import ExploreSession
    from lexveil.faces.service.page.form import Row
    from lexveil.faces.service.page.pages import Shown, read_rows, serve

    session = ExploreSession(words.name)
    name = "FILE" if file is None else str(source)
    column = text_column
    shown_rows = list[Row]()
    if file is not None:
        using = session.model("")
        spool = using.path(using.configuration.machine.temp_directory)
        shown_rows, column = read_rows(file, text_column, rows, spool)
    page = Shown(shown_rows, name, column, command_of)
    code = serve(session, port or 0, page, _tell_address)
    os._exit(code)  # a thread may still compute the guesses of an adversary


def _tell_address(address: str) -> None:
    print(f"{address}\nCtrl-C ends it.", flush=True)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """Options that state the target of a calibration.

    Attributes:
        recovery: the share of words that an adversary is expected to name
        band: the words for which --recovery holds, by public frequency; content: all but function
            words
        mechanism: one or several mechanisms, separated by commas; or all
        strategy: one or several of S1 to S4, separated by commas
    """

    recovery: Share
    band: BandName = "all"
    mechanism: Annotated[str, Parameter(metavar="M,M")] = "tem,madlib"
    strategy: Annotated[str, Parameter(metavar="S,S")] = "S3"


def calibrate(
    *,
    target: Target,
    words: ChosenModel = CHOSEN,
    json: Json = False,
) -> int:
    """Find the epsilon at which an adversary is expected to name a given share of the words.

    The adversary knows mechanism, model and epsilon, and guesses the perturbed words from the
    output, either each word alone, or by the words around it; the better guesses count. For each
    mechanism and strategy, the command prints the epsilon at which this adversary is expected to
    name the share R of the words (or of the words of --band). It also prints the shares of named
    and unchanged words for each frequency band. The result follows from public information, so it
    may be published; `lexveil privatize --recovery R` uses it. The command spends nothing, and
    caches its results. Exit code 1 if no epsilon gives R.

        lexveil calibrate --recovery 0.1
        lexveil calibrate --recovery 0.05 --band rare --mechanism all --strategy S1,S3
        lexveil calibrate --recovery 0.1 --mechanism tem --json
    """
    strategies = tuple(STRATEGIES.get(name, name) for name in _names(target.strategy))
    anywhere()
    from lexveil.core.mechanisms.registry import MECHANISMS
    from lexveil.io.artifacts.model import Model
    from lexveil.readers import calibrate as calibration

    model = Model.load(None, words.name)
    mechanisms = tuple(MECHANISMS) if target.mechanism == "all" else _names(target.mechanism)
    result = calibration.calibrate(model, target.recovery, mechanisms, strategies, target.band)
    show(result.to_dict() if json else result, json, calibration.as_text)
    return 0 if any(run.epsilon is not None for run in result.runs) else 1


def _names(written: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in written.split(","))


if TYPE_CHECKING:

    class Auditing: ...  # noqa: D101
else:
    Auditing = options_of(AuditRequest)


def audit(
    *,
    how: Auditing,
    words: ChosenModel = CHOSEN,
    json: Json = False,
    out: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Test the privacy that a mechanism claims.

    Tests the mechanism on toy vocabularies and on words of the embedding, and tests whole releases
    of a toy project with a separate ledger. The audit computes distances, distributions and budgets
    itself. The verdict is `violated` (exit code 1), `no violation found` with the factor that the
    tests can detect, or `inconclusive`. Works anywhere, like `lexveil privatize`.

        lexveil audit --mechanism madlib --epsilon 10
        lexveil audit --mechanism madlib --epsilon 10 --strategy S3 --out audit.json

    Args:
        out: write the result to FILE as JSON
    """
    out = out and out.absolute()
    request = requested(how, AuditRequest)
    anywhere()
    from lexveil.auditing import audit as auditing

    result = auditing.audit(request, out, model=words.name)
    show(result.as_dict() if json else result, json, auditing.AuditResult.as_text)
    return 1 if result.violation else 0
