"""Serves the page on this machine, until Ctrl-C."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from uvicorn import Config, Server

from lexveil.privatization.adapters.inputs import STDIN, find_readers, name_in
from lexveil.request import FileRequest
from lexveil.service.logs import log_config
from lexveil.service.page.background import Background, Failed, Question
from lexveil.service.page.drawing import ExploreSession, load_kernels
from lexveil.service.page.form import MOST, Form
from lexveil.service.page.pages import Row, Shown, create_page
from lexveil.service.page.samples import SAMPLES
from lexveil.service.server import bound

HOST = "127.0.0.1"


def serve(session: ExploreSession, port: int, shown: Shown, tell: Callable[[str], None]) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        port: 0 lets the system choose one.
        tell: hears of the page's address when it can be opened.
    """
    token, background = secrets.token_urlsafe(24), Background()
    config = Config(
        create_page(session, token, shown, background),
        host=HOST,
        port=port,
        log_config=_quiet(),
        access_log=False,  # its lines have the token
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    socket = bound(config, f"--port {port}")
    try:
        session.draw(
            Form.of(text=next(iter(SAMPLES.values())), epsilon="5")
        )  # the first answer is then as quick as others
        socket.listen()  # who asks at once waits for the answer, and is not turned away
        tell(f"http://{HOST}:{socket.getsockname()[1]}/?token={token}")
        threading.Thread(target=_load_kernels, args=(session, background), daemon=True).start()
        Server(config).run([socket])
    finally:
        socket.close()
        background.close()
    return 0


def read_rows(
    source: Path | str, column: str | None, form: str | None, n_rows: int, spool: Path
) -> tuple[list[Row], str]:
    """The first rows of a file or a folder that have a text.

    Args:
        column: of the texts; None looks for it.
        form: of standard input.
        spool: where standard input is kept meanwhile.

    Returns:
        Texts cut at the length that the page takes, and their column.

    Raises:
        RequestError: if it cannot be read.
    """
    rows: list[Row] = []
    columns = () if column is None else (column,)
    request = FileRequest(mechanism="none", strategy="none", text_column=columns, form=form, mode="experiment")
    with find_readers(source, request, spool) as readers:
        is_folder = source != STDIN and Path(source).is_dir()
        for reader in readers:
            file = name_in(source, reader.source.path) if is_folder else ""
            for chunk in reader.chunks(for_writing=False):
                for number, (text,) in enumerate(chunk.texts, chunk.first):
                    if len(rows) == n_rows:
                        return rows, reader.text_columns[0]
                    if text is not None and text.strip():
                        rows.append(Row(file, number, text[:MOST]))
        return rows, readers[0].text_columns[0]


def _load_kernels(session: ExploreSession, background: Background) -> None:
    """Load compiled code while somebody opens the page; it is the other process that compiles it, if need be.

    Until then draws do without, so that none waits for it.
    """
    question = Question("kernels", session.default)
    while not (answer := background.ask(question)):
        time.sleep(0.5)
    if not isinstance(answer, Failed):
        load_kernels(session.default)


def _quiet() -> dict[str, object]:
    """Logs without a line for each request: there is one for each key that is pressed."""
    config = log_config()
    for logger in config["loggers"].values():
        logger["level"] = "WARNING"
    return config
