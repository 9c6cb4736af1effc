"""`lexveil explore`: a page on this machine to look at what texts become."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import CHOSEN, ChosenModel, Port, Rows
from lexveil.cli.output import anywhere, located
from lexveil.cli.rewriting import command_of
from lexveil.cli.service import require_libraries


def explore(
    source: Annotated[str | None, Parameter(name="IN")] = None,
    /,
    *,
    text_column: Annotated[str | None, Parameter(metavar="NAME")] = None,
    rows: Rows = 20,
    words: ChosenModel = CHOSEN,
    port: Port | None = None,
) -> int:
    """A page on this machine that shows what texts become: tokens, draws, neighbours, what a reader would guess.

    Prints the address of the page, in which a token stands, and answers at 127.0.0.1 until Ctrl-C. Nothing is sent
    elsewhere, and the page works without a network. What it draws are experiments, which no ledger is charged for. It
    opens with public texts. Whoever chooses parameters by looking at private ones, as those of IN may be, has selected
    by them, and no budget accounts for that. docs/how-to/explore.md says what is to be seen.

        lexveil explore
        lexveil explore tickets.csv --text-column body

    Args:
        source: file or folder whose first rows can be opened in the page
        text_column: the column of IN to look at (default: as of `lexveil privatize`)
        rows: of IN
        port: to listen at (default: a free one)
    """
    require_libraries()
    file = None if source is None else located(source)
    anywhere()
    from lexveil.service.page.drawing import ExploreSession
    from lexveil.service.page.pages import Row, Shown
    from lexveil.service.page.server import read_rows, serve

    session = ExploreSession(words.name)
    name, column, shown_rows = "FILE" if file is None else str(source), text_column, list[Row]()
    if file is not None:
        using = session.model("")
        spool = using.path(using.params.machine.temp_directory)
        shown_rows, column = read_rows(file, text_column, rows, spool)
    return serve(session, port or 0, Shown(shown_rows, name, column, command_of))
