"""The page of `lexveil explore`, which is served on this machine: its routes and its access
control.
"""

from __future__ import annotations

import math
import secrets
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn import Config, Server

from lexveil.base.errors import LexveilError
from lexveil.base.runtime.hashes import version
from lexveil.core.accounting.changes import Fate
from lexveil.core.mechanisms import mechanism_names
from lexveil.core.protection import LEVELS
from lexveil.faces.service.gate import (
    PAGE,
    PAGE_HEADERS,
    TOKEN_HEADER,
    Gate,
    Metrics,
    RequestQueue,
    token_access,
)
from lexveil.faces.service.page import readers
from lexveil.faces.service.page.drawing import Drawing, ExploreSession, load_kernels
from lexveil.faces.service.page.form import DEFAULTS, MOST, PUBLIC, SAMPLES, Form, Row
from lexveil.faces.service.server import bound, log_config
from lexveil.faces.service.terms import LOCAL
from lexveil.io.artifacts.model_store import installed
from lexveil.io.artifacts.user_lists import installed_purposes
from lexveil.io.request import BUDGETS, FileRequest
from lexveil.io.request import Request as RewriteRequest
from lexveil.release.adapters.inputs import find_readers, is_a_folder, name_in
from lexveil.release.settings import measured_level, settings_of

T = TypeVar("T")
FOLDER = Path(__file__).parent
MOST_BYTES = 2**18  # of a body
# the first mechanism of a model can take this long
QUEUE = 32
QUEUE_SECONDS = 60.0
READER_SECONDS = 600.0  # the first computation of the epsilon of a recovery can take this long
TABLE = 150  # number of tokens in the table of changes


@dataclass(frozen=True, slots=True)
class Shown:
    """The texts of a file that the explore page can show.

    Attributes:
        rows: the texts of the file, which are private.
        file: the name of the file.
        column: the text column of the file.
        command: function that returns the command for a release, from the request, the file, the
            columns and the name of the model.
    """

    rows: Sequence[Row] = ()
    file: str = "FILE"
    column: str | None = None
    command: Callable[[RewriteRequest, str, Sequence[str], str | None], str] = lambda *_: ""

    def row(self, text: str) -> Row:
        """Return the row of the file that contains a text. For a text that is not in the file,
        return a new row.
        """
        return next(
            (row for row in self.rows if row.text == text), Row(text, column=self.column or "text")
        )


def figure(number: float, digits: int) -> str:
    """Format a positive number in decimal notation with some significant digits: 12,300 rather than
    1.23e+04.
    """
    if not 1e-4 <= number < 1e12:
        return f"{number:.{digits}g}"
    places = digits - 1 - math.floor(math.log10(number))
    rounded = round(number, places)
    return (
        f"{rounded:,.{max(places, 0)}f}".rstrip("0").rstrip(".")
        if places > 0
        else f"{rounded:,.0f}"
    )


NO_BUDGET = dict.fromkeys(BUDGETS)


class Pages:
    """Request handlers of the explore page. One thread computes draws, another computes an
    adversary's guesses, and requests take turns in each thread.

    A result is not computed if its client no longer waits for it, because another text was typed.
    """

    def __init__(self, session: ExploreSession, token: str, shown: Shown) -> None:
        self.session = session
        self.token = token
        self.shown = shown
        self.queue, self.readers = (
            RequestQueue(QUEUE, QUEUE_SECONDS),
            RequestQueue(QUEUE, READER_SECONDS),
        )
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        self._templates.filters["figure"] = figure
        self._templates.globals |= {"Fate": Fate, "version": version()}

    async def page(self, _: Request) -> Response:
        """Return the page with a public text. Rows of a file are shown only when the user opens
        them.
        """
        model = self.session.model("")
        defaults = Form.of()
        return self._html(
            "page",
            form=defaults,
            defaults=DEFAULTS,
            levels=LEVELS,
            text=next(iter(SAMPLES.values())),
            samples=list(SAMPLES),
            rows=self.shown.rows,
            file=self.shown.file,
            mechanisms=mechanism_names(),
            models=[name for name in installed() if name != model.name],
            purposes=list(installed_purposes()),
            model=model.name,
            config_headers={TOKEN_HEADER: self.token},
        )

    async def sample(self, request: Request) -> Response:
        """Return the text field with a public text or a row of the file."""
        kind, _, name = request.query_params.get("sample", "").partition(":")
        try:
            text = self.shown.rows[int(name)].text if kind == "row" else SAMPLES[name]
        except (KeyError, ValueError, IndexError):
            raise HTTPException(404) from None
        answer = self._html("text", text=text)
        answer.headers["HX-Trigger-After-Settle"] = "redraw"
        return answer

    async def draws(self, request: Request, form: Form) -> Response:
        """Return the tokens of the submitted text and their outcomes in the draws."""
        drawing = await self._drawn(request, form)
        return self._html(
            "draws",
            form=form,
            drawing=drawing,
            is_public=form.text in PUBLIC or not form.text.strip(),
            is_row=self.shown.row(form.text) in self.shown.rows,
            refused=drawing.refused if drawing.is_decided else None,
            command=self.shown.command(
                form.request,
                self.shown.file,
                [self.shown.column] if self.shown.column else [],
                self._model(form),
            ),
            table=min(TABLE, len(drawing.tokens)),
        )

    async def token_(self, request: Request, form: Form) -> Response:
        """Return the possible outcomes of the selected token."""
        drawing = await self._drawn(request, form)
        detail = await self.queue.take(request, lambda: drawing.detail(form.token))
        return self._html("token", form=form, detail=detail)

    async def expected(self, request: Request, form: Form) -> Response:
        """Return the share of words that a Bayes-optimal adversary is expected to guess, at the
        largest epsilon of a token.
        """
        drawing = await self._drawn(request, form)
        epsilons = drawing.epsilons
        if epsilons is None:
            return self._html("expected", epsilon=None, linkage=None)
        if drawing.settings.sentences is not None:
            name = self._model(form)
            asked = self._asked(form)
            linkage = await self.readers.take(request, lambda: readers.linkage_said(name, asked))
            return self._html("expected", epsilon=epsilons[1], linkage=linkage)
        try:
            of_level = (epsilons[1], form.request.level)
            expected = await self._ask(request, readers.expected_shares, form, *of_level)
        except LexveilError as error:
            return self._html("expected", epsilon=epsilons[1], linkage=None, failed=str(error))
        return self._html(
            "expected", epsilon=epsilons[1], linkage=None, failed=None, expected=expected
        )

    async def release(self, request: Request, form: Form) -> Response:
        """Return whether a release of the text would be refused. This handler is for settings with
        which the computation takes long.
        """
        drawing = await self._drawn(request, form)
        settings = drawing.in_release
        budget = {
            **NO_BUDGET,
            "epsilon": settings.base_epsilon,
            "max_token_epsilon": settings.spending and settings.spending.max_token_epsilon,
        }
        asked = form.request.model_copy(update={**budget, "mode": "release", "seed": None})
        refused = await self.readers.take(
            request, lambda: readers.release_refusal(self._model(form), asked)
        )
        return self._html("release", drawing=drawing, refused=refused, is_late=True)

    async def guesses(self, request: Request, form: Form) -> Response:
        """Return an adversary's guesses of the source word, given the words that were written at
        the selected token.
        """
        drawing = await self._drawn(request, form)
        token = drawing.token(form.token)
        words = drawing.words
        outputs = [row[form.token or 0] for row in drawing.outputs]
        distinct = tuple(dict.fromkeys(outputs))
        try:
            answer = await self._ask(request, readers.guesses, form, token.epsilon, distinct)
        except LexveilError as error:
            return self._html("guesses", failed=str(error))
        guesses = [
            (
                words[output],
                [str(draw) for draw, other in enumerate(outputs, 1) if other == output],
                [(words[word], word == token.word) for word in likeliest if word >= 0],
            )
            for output, likeliest in zip(distinct, answer, strict=True)
        ]
        return self._html("guesses", failed=None, guesses=guesses)

    async def _drawn(self, request: Request, form: Form) -> Drawing:
        """Return the draws of the submitted form, which are computed only once per form.

        Raises:
            RequestError: if no epsilon gives the protection level or the recovery of the form.
        """
        epsilon = None
        level = form.request.level
        if level is not None:
            model = self.session.model(form.model)
            known = measured_level(settings_of(form.request, model.project), model, level)
            epsilon = known and known.epsilon
        if epsilon is None and form.looks_up_epsilon:
            name = self._model(form)
            asked = self._asked(form)
            epsilon = await self.readers.take(request, lambda: readers.base_epsilon(name, asked))
        row = self.shown.row(form.text)
        return await self.queue.take(request, lambda: self.session.draw(form, epsilon, row))

    async def _ask(
        self, request: Request, function: Callable[..., T], form: Form, *arguments: Any
    ) -> T:
        # The budget does not matter for this answer. It is set to a constant, so that the cache
        # finds the answer again.
        name = self._model(form)
        asked = self._asked(form).model_copy(update={**NO_BUDGET, "epsilon": 1.0})
        return await self.readers.take(request, lambda: function(name, asked, *arguments))

    def _model(self, form: Form) -> str | None:
        return self.session.name_of(form.model)

    @staticmethod
    def _asked(form: Form) -> RewriteRequest:
        """Return the request of a form without the fields that do not influence slow computations,
        so that their cached results are found again.
        """
        same: dict[str, object] = {
            "keep_layout": False,
            "consistent": False,
            "detector": "none",
            "mode": "experiment",
        }
        same |= dict.fromkeys(("average_words", "max_token_epsilon", "spacy_model"))
        return form.request.model_copy(update={**same, "seed": 0})

    def _html(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(
            self._templates.get_template(f"{template}.html.j2").render(values), status
        )

    def posted(
        self, answer: Callable[[Request, Form], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a route handler that parses a submitted form and passes it to ``answer``."""

        async def route(request: Request) -> Response:
            return await answer(request, Form.read(await request.body()))

        return route

    async def failed(self, _: Request, error: Exception) -> Response:
        """Return an error as a response that the page shows. The message contains no text of the
        user.
        """
        return self._html("error", 422, message=str(error))


def create_page(session: ExploreSession, token: str, shown: Shown | None = None) -> Starlette:
    """Create the web application of the explore page.

    Args:
        token: secret token that every request must have.
        shown: the texts of a file that the page can show.
    """
    pages = Pages(session, token, shown or Shown())
    posts = {
        "draws": pages.draws,
        "token": pages.token_,
        "release": pages.release,
        "expected": pages.expected,
        "guesses": pages.guesses,
    }
    app = Starlette(
        routes=[
            Route(PAGE, pages.page),
            Route("/api/sample", pages.sample),
            *(
                Route(f"/api/{name}", pages.posted(answer), methods=["POST"])
                for name, answer in posts.items()
            ),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={LexveilError: pages.failed},
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOCAL, www_redirect=False)
    app.add_middleware(
        Gate,
        admit=token_access(token),
        max_bytes=MOST_BYTES,
        metrics=Metrics(),
        headers=PAGE_HEADERS,
    )
    return app


HOST = "127.0.0.1"


def serve(session: ExploreSession, port: int, shown: Shown, tell: Callable[[str], object]) -> int:
    """Serve the explore page until SIGTERM or Ctrl-C, and return the exit code.

    Args:
        port: port to listen at; 0 lets the system choose one.
        tell: function that is called with the page's address when the page can be opened.
    """
    token = secrets.token_urlsafe(24)
    config = Config(
        create_page(session, token, shown),
        host=HOST,
        port=port,
        # no log line for each request, because every keystroke sends one
        log_config=log_config(level="WARNING"),
        access_log=False,  # its log lines contain the token
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    socket = bound(config, f"--port {port}")
    try:
        # so that the first answer is as fast as later answers
        session.draw(Form.of(text=next(iter(SAMPLES.values())), epsilon="5"))
        socket.listen()  # a request at this time waits for the answer, and is not refused
        tell(f"http://{HOST}:{socket.getsockname()[1]}/?token={token}")
        with _compiled(session.default):
            Server(config).run([socket])
    finally:
        socket.close()
    return 0


def read_rows(
    source: Path | str, column: str | None, n_rows: int, spool: Path
) -> tuple[list[Row], str]:
    """Return the first rows of a file or a folder that have a text.

    Args:
        column: the column of the texts; None chooses it by type and name.
        spool: the file where standard input is stored meanwhile.

    Returns:
        The rows, with texts cut at the length that the page accepts, and their column.

    Raises:
        RequestError: if the source cannot be read.
    """
    rows: list[Row] = []
    columns = () if column is None else (column,)
    request = FileRequest(mechanism="none", strategy="none", text_column=columns, mode="experiment")
    with find_readers(source, request, spool) as readers:
        is_folder = is_a_folder(source)
        for reader in readers:
            file = name_in(source, reader.source.path) if is_folder else ""
            for chunk in reader.chunks(for_writing=False):
                texts = (
                    (number, text)
                    for number, row in enumerate(chunk.texts, chunk.first)
                    for text in row
                    if text is not None and text.strip()
                )
                for number, text in texts:
                    if len(rows) == n_rows:
                        return rows, reader.text_columns[0]
                    rows.append(Row(text[:MOST], file, number, reader.text_columns[0]))
        return rows, readers[0].text_columns[0]


@contextmanager
def _compiled(name: str | None) -> Iterator[None]:
    """Load compiled code while the user opens the page. If the code must be compiled first, a
    separate process compiles it, and is stopped when the page ends.

    Draws do not wait for compiled code, and work without it until then.
    """
    code = (
        "import os, sys, lexveil.faces.service.page.drawing as drawing; os.nice(10); "
        "drawing.load_kernels(*sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *([name] if name else [])]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def load() -> None:
        if process.wait() >= 0:  # the process has not ended
            load_kernels(name)

    threading.Thread(target=load, daemon=True).start()
    try:
        yield
    finally:
        process.kill()
