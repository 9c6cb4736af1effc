"""`lexveil privatize`: rewrite files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import Parameter

from lexveil.cli.options import CHOSEN, ChosenModel, Json, Rows
from lexveil.cli.output import anywhere, located, show
from lexveil.cli.rewriting import Rewriting, requested, written
from lexveil.errors import RequestError
from lexveil.request import FileRequest

if TYPE_CHECKING:
    from lexveil.accounting.operator_report import OperatorReport
    from lexveil.privatization.adapters.files import PrivatizedFiles


def privatize(
    source: Annotated[str, Parameter(name="IN")],
    /,
    *,
    output: Annotated[str | None, Parameter(metavar="OUT", alias="-o")] = None,
    preview: Rows | None = None,
    how: Rewriting = Rewriting(),  # noqa: B008  # frozen
    words: ChosenModel = CHOSEN,
    json: Annotated[Json, Parameter(help="machine-readable summary")] = False,
) -> int:
    r"""Rewrite a file or a folder of texts.

    Reads JSONL, CSV, TSV, text (each also .gz or .zst), Parquet, or a query of PostgreSQL or SQLite, rewrites the
    text columns, and leaves the rest as it is. A record of what was protected, what was not and what was spent goes
    with the output, and the ledger (`lexveil ledger`) keeps what each subject has spent in all releases. Works
    anywhere: outside of projects with a model that is installed, and a ledger in your data folder. `lexveil inspect
    IN` says beforehand what would happen.

        lexveil privatize tickets.csv -o out.csv
        lexveil privatize tickets.csv -o out.csv --protection strong --subject-column customer
        lexveil privatize letters.jsonl -o out.jsonl --mechanism madlib --strategy S3 --epsilon 10
        lexveil privatize tickets.csv -o out.csv --text-column title --text-column body \
            --subject-column customer --mechanism tem --strategy S3 --document-budget 200
        lexveil privatize archive/ -o private/ --workers 8
        lexveil privatize letters.jsonl --preview 5
        lexveil privatize postgresql://localhost/crm --sql 'SELECT id, body AS text FROM tickets' \
            -o postgresql://localhost/crm --table tickets_private
        cat a.jsonl | lexveil privatize - -o - > b.jsonl

    Args:
        source: file or folder to rewrite; the address of a database; - is standard input
        output: file or folder to write, in the form of IN (of a database: NAME.parquet); the address of a database; or
            -, standard output, without record and token log
        preview: in place of -o: show the first N rows on the terminal, source beside what comes out, as an experiment;
            nothing is written or charged
    """
    if preview is not None:
        return _preview(source, preview, output, json, how, words.name)
    if output is None:
        raise RequestError("the following arguments are required: --output, or --preview to only look")
    in_file, out_file = located(source), located(output)
    request = requested(how, FileRequest)
    anywhere()
    from lexveil.accounting.statement import statement
    from lexveil.privatization.adapters.files import privatize_file
    from lexveil.runtime.arrow import keep_pandas_out

    keep_pandas_out()
    done = privatize_file(in_file, out_file, request, model=words.name)
    stream = sys.stderr if output == "-" else sys.stdout  # standard output is then the text itself
    if json:
        show(done.record.to_dict(), True, stream=stream)
    else:
        print("\n".join(statement(done.record, done.operator)), file=stream)
        _print_outputs(done, output, stream)
    return _exit_code(done.operator)


def _print_outputs(done: PrivatizedFiles, output: str, stream: TextIO) -> None:
    """Say which files, or which table, were written."""
    if done.table is not None and done.target is not None:
        print(f"table: {done.table}, with a copy of the record in the table lexveil_records")
        output = done.target.name
    if output == "-":
        return
    if done.target is not None and done.target.name != Path(output).name:
        output = str(Path(output).with_name(done.target.name))
        print(f"the output has no guarantee, so it is named {output}", file=stream)
    print(f"record: {output}.record.json", file=stream)
    if done.operator is not None:
        print(f"never to be published: {output}.operator.json, {output}.tokens.parquet", file=stream)


def _exit_code(operator: OperatorReport | None) -> int:
    """1 where nothing went out because every budget is exhausted: a job that goes on would not notice."""
    costs = None if operator is None else operator.ledger
    if costs is None or costs.documents_charged or not costs.documents_requested:
        return 0
    print(
        "lexveil privatize: all rows are withheld, because the budgets of their subjects are exhausted; nothing was "
        "charged, and the output has no text. `lexveil ledger show` names balances, `lexveil ledger cap` sets the cap",
        file=sys.stderr,
    )
    return 1


def _preview(source: str, n_rows: int, output: str | None, json: bool, how: Rewriting, model: str | None) -> int:
    """Show the first rows, source beside output."""
    if output is not None:
        raise RequestError("--preview writes nothing; leave -o out, or --preview")
    if written(how).get("mode") == "release":
        raise RequestError("--preview draws an experiment, which no ledger is charged for; leave --mode release out")
    if not json and not sys.stdout.isatty():
        raise RequestError(
            "--preview shows source text, on a terminal only; with --json it goes to a file or another program"
        )
    in_file, request = located(source), requested(how, FileRequest, mode="experiment")
    anywhere()
    from lexveil.privatization.looking.preview import preview

    found = preview(in_file, n_rows, request, model=model)
    if json:
        show(found.result().to_dict(), True)
        return 0
    from lexveil.cli.preview import show_preview

    show_preview(found)
    return 0
