"""`lexveil explore`: a page on this machine to look at what texts become."""

from __future__ import annotations

from typing import Annotated

from lexveil.cli.options import ChosenModel, Port, Stream, option, reads, whole
from lexveil.cli.output import anywhere, located
from lexveil.cli.rewriting import command_of
from lexveil.cli.service import require_libraries


def explore(
    source: Annotated[
        Stream | None, option("file or folder whose first rows can be opened in the page", name="IN")
    ] = None,
    /,
    *,
    text_column: Annotated[
        str | None, option("the column of IN to look at (default: as of `lexveil privatize`)", "NAME")
    ] = None,
    rows: Annotated[int, option("of IN", "N", converter=reads(whole(1, 1000, "a number of rows (1 to 1000)")))] = 20,
    words: ChosenModel = ChosenModel(),  # noqa: B008  # frozen
    port: Annotated[Port | None, option("to listen at (default: a free one)")] = None,
) -> int:
    """A page on this machine that shows what texts become: tokens, draws, neighbours, what a reader would guess.

    Prints the address of the page, in which a token stands, and answers at 127.0.0.1 until Ctrl-C. Nothing is sent
    elsewhere, and the page works without a network. What it draws are experiments, which no ledger is charged for. It
    opens with public texts. Whoever chooses parameters by looking at private ones, as those of IN may be, has selected
    by them, and no budget accounts for that. docs/how-to/explore.md says what is to be seen.

      lexveil explore
      lexveil explore tickets.csv --text-column body
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
        shown_rows, column = read_rows(file, text_column, None, rows, spool)
    shown = Shown(shown_rows, name, column, command_of)
    return serve(session, port or 0, shown, _tell)


def _tell(address: str) -> None:
    print(f"{address}\nCtrl-C ends it.", flush=True)
