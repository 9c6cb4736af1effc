"""The page as an application: its routes and what stands before them. It knows nothing of processes and sockets."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lexveil.accounting.changes import Fate
from lexveil.artifacts import purpose_files
from lexveil.artifacts.model_store import installed
from lexveil.errors import LexveilError, RequestError
from lexveil.mechanisms import mechanism_names
from lexveil.privatization.settings import measured_level, settings_of
from lexveil.protection import LEVELS
from lexveil.request import BUDGETS
from lexveil.request import Request as RewriteRequest
from lexveil.runtime.hashes import version
from lexveil.service.app import RequestQueue
from lexveil.service.gate import PAGE, TOKEN_HEADER, TokenAccess, add_gates
from lexveil.service.metrics import Metrics
from lexveil.service.page.background import Background, Expected, Failed, Question
from lexveil.service.page.drawing import Drawing, ExploreSession, Place
from lexveil.service.page.form import DEFAULTS, Form
from lexveil.service.page.samples import PUBLIC, SAMPLES
from lexveil.service.refusals import Refusal
from lexveil.service.terms import LOCAL
from lexveil.text.pieces import plain

FOLDER = Path(__file__).parent
BODY, BODY_SECONDS = 2**18, 10.0  # bytes of a form, and seconds to wait for it
QUEUE, QUEUE_SECONDS = 32, 60.0  # a model's first mechanism can take that long
TABLE = 150  # tokens in the table of what changed


class Said(NamedTuple):
    """What the page says of what is done to a token.

    Attributes:
        name: in a word.
        meaning: of it, in the legend.
        long: where the token is looked at.
    """

    name: str
    meaning: str
    long: str


ACTIONS = {  # by what token logs say
    "perturbed": Said("perturbed", "noise by ε", "perturbed"),
    "sampled": Said("random", "a random word, whatever it was", "replaced by a random word"),
    "kept": Said("kept", "unprotected: it comes out as it is", "kept as it is, unprotected"),
    "dropped": Said("dropped", "nothing comes out", "dropped"),
    "placeholder": Said("placeholder", "found: its type stands in its place", "found, and replaced by its type"),
    "pseudonym": Said("pseudonym", "found: a public name", "found, and replaced by a name of a public list"),
    "digits": Said("digits", "found: others in the same form", "found, and replaced by others in the same form"),
}
STRATEGIES = {
    "S1": "S1: words",
    "S2": "S2: collocations on the budget of words",
    "S3": "S3: collocations, greedy",
    "S4": "S4: collocations by score",
}


class Row(NamedTuple):
    """A text of a file.

    Attributes:
        file: its name, if there are several.
        number: of the row, from 1.
    """

    file: str
    number: int
    text: str

    @property
    def name(self) -> str:
        """What the page calls it."""
        return f"{self.file} row {self.number:,}".lstrip()


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page is about.

    Attributes:
        rows: texts of a file, which are private.
        file: its name.
        column: of the file.
        command: what releases a file by a request; takes the request, file, column and the name of the model.
    """

    rows: Sequence[Row] = ()
    file: str = "FILE"
    column: str | None = None
    command: Callable[[RewriteRequest, str, str | None, str | None], str] = lambda *_: ""

    def place(self, text: str) -> Place:
        """Where a text stands; what is none of the rows, in a file of its own."""
        file, number = next(((row.file, row.number) for row in self.rows if row.text == text), ("", 1))
        return Place(file, number, self.column or "text")


def figure(number: float, digits: int) -> str:
    """A number above 0 in so many significant digits, as people write it: 12,300 rather than 1.23e+04."""
    if not 1e-4 <= number < 1e12:
        return f"{number:.{digits}g}"
    places = digits - 1 - math.floor(math.log10(number))
    rounded = round(number, places)
    return f"{rounded:,.{max(places, 0)}f}".rstrip("0").rstrip(".") if places > 0 else f"{rounded:,.0f}"


NO_BUDGET = dict.fromkeys(BUDGETS)


class Pages:
    """Answers by the session, which one request after the other has to itself, and by what runs in the background."""

    def __init__(self, session: ExploreSession, background: Background, token: str, shown: Shown) -> None:
        self.session, self.background, self.token, self.shown = session, background, token, shown
        self.queue = RequestQueue(QUEUE, QUEUE_SECONDS)
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._templates.filters["figure"] = figure
        self._templates.globals |= {"Fate": Fate, "version": version(), "actions": ACTIONS}

    async def page(self, _: Request) -> Response:
        """The page, with a public text; rows of a file are opened by whoever wants to."""
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
            strategies=STRATEGIES,
            models=[name for name in installed() if name != model.name],
            purposes=list(purpose_files.installed()),
            model=model.name,
            config_headers={TOKEN_HEADER: self.token},
        )

    async def sample(self, request: Request) -> Response:
        """The field of the text with a public text or a row in it."""
        kind, _, name = request.query_params.get("sample", "").partition(":")
        try:
            text = self.shown.rows[int(name)].text if kind == "row" else SAMPLES[name]
        except (KeyError, ValueError, IndexError):
            raise HTTPException(404) from None
        answer = self._html("text", text=text)
        answer.headers["HX-Trigger-After-Settle"] = "redraw"
        return answer

    async def draws(self, request: Request) -> Response:
        """The text as it is cut, and what came of it."""
        form = Form.read(await request.body())
        if self._found(form) is None and form.looks_up_epsilon:
            return self._html("waiting", form=form)
        drawing = await self._drawn(request, form)
        return self._html(
            "draws",
            form=form,
            drawing=drawing,
            is_public=form.text in PUBLIC or not form.text.strip(),
            is_row=any(form.text == row.text for row in self.shown.rows),
            refused=self._refused(drawing),
            command=self.shown.command(form.request, self.shown.file, self.shown.column, self._model(form)),
            table=min(TABLE, len(drawing.tokens)),
        )

    async def token_(self, request: Request) -> Response:
        """What may become of one token."""
        form = Form.read(await request.body())
        found, place = self._settled(form), self.shown.place(form.text)
        detail = await self.queue.take(request, lambda: self.session.detail(form, found, place))
        return self._html("token", form=form, detail=detail)

    async def expected(self, request: Request) -> Response:
        """What a best-informed reader is expected to name at the largest epsilon of a token; it may take seconds."""
        form = Form.read(await request.body())
        drawing = await self._drawn(request, form)
        epsilons = drawing.epsilons
        answer = None if epsilons is None else self._ask("expected", form, epsilons[1])
        expected = answer if isinstance(answer, Expected) else None
        failed = answer if isinstance(answer, Failed) else None
        return self._html(
            "expected", expected=expected, failed=failed, epsilon=epsilons and epsilons[1], paid=epsilons is not None
        )

    async def release(self, request: Request) -> Response:
        """Whether the text would be refused as a release, where that takes long to say."""
        drawing = await self._drawn(request, Form.read(await request.body()))
        return self._html("release", drawing=drawing, refused=self._refused(drawing), is_late=True)

    async def guesses(self, request: Request) -> Response:
        """What a reader would guess of what came out at one token; it may take seconds."""
        form = Form.read(await request.body())
        number = form.token
        drawing = await self._drawn(request, form)
        if number is None or number >= len(drawing.tokens):
            raise RequestError("the text has no such token any more; choose another one")
        token = drawing.tokens[number]
        outputs = [row[number] for row in drawing.outputs]
        answer = self._ask("guesses", form, token.epsilon, tuple(dict.fromkeys(outputs)))
        if not isinstance(answer, list):
            return self._html("guesses", guesses=None, failed=answer, number=number)
        engine = drawing.engine
        words = [plain(engine.lexicon.tokens[row]) for row in engine.vocabulary.rows.tolist()]
        by_output = dict(zip(dict.fromkeys(outputs), answer, strict=True))
        guesses = [
            (
                words[output],
                [str(draw) for draw, one in enumerate(outputs, 1) if one == output],
                [(words[word], word == token.word) for word in likeliest if word >= 0],
            )
            for output, likeliest in by_output.items()
        ]
        return self._html("guesses", guesses=guesses, failed=None, number=number)

    def _found(self, form: Form) -> float | None:
        """The epsilon of the level or recovery that a form asks for; None as long as it is not known, or of neither.

        Raises:
            RequestError: if no epsilon gives it.
        """
        if not form.looks_up_epsilon:
            return None
        if (level := form.request.level) is not None:
            model = self.session.model(form.model)
            known = measured_level(settings_of(form.request, model.params), model, level)
            if known is not None:
                return known.epsilon
        found = self.background.ask(Question("epsilon", self._model(form), self._asked(form)))
        if isinstance(found, Failed):
            raise RequestError(found)
        return None if found is None else float(found)

    def _settled(self, form: Form) -> float | None:
        """The same, for what is asked about draws that are there.

        Raises:
            RequestError: if there is none, or it is not known yet.
        """
        found = self._found(form)
        if found is None and form.looks_up_epsilon:
            raise RequestError("the draws are not there yet; wait for them")
        return found

    async def _drawn(self, request: Request, form: Form) -> Drawing:
        """The draws of a form, which are made but once."""
        found, place = self._settled(form), self.shown.place(form.text)
        drawing: Drawing = await self.queue.take(request, lambda: self.session.draw(form, found, place))
        return drawing

    def _refused(self, drawing: Drawing) -> str | None:
        """Why a release of the text would be refused, or "" if it would not be; None as long as it is not known."""
        form, settings = drawing.form, drawing.in_release
        if drawing.refused is not None or drawing.engine.model.params.release.max_recovery is None:
            return drawing.refused or ""
        found = {"epsilon": settings.epsilon, "max_token_epsilon": settings.max_token_epsilon}
        request = form.request.model_copy(update={**NO_BUDGET, **found, "mode": "release", "seed": None})
        said = self.background.ask(Question("release", self._model(form), request))
        return None if said is None else str(said)

    def _ask(self, kind: str, form: Form, epsilon: float, outputs: tuple[int, ...] = ()) -> Any:
        # Which budget it is does not matter here, so it is always the same, for the answer to be known again.
        request = self._asked(form).model_copy(update={**NO_BUDGET, "epsilon": 1.0})
        return self.background.ask(Question(kind, self._model(form), request, epsilon, outputs))

    def _model(self, form: Form) -> str | None:
        return self.session.name_of(form.model)

    @staticmethod
    def _asked(form: Form) -> RewriteRequest:
        """The request without what no answer of the background depends on, so that it is known again."""
        same = {"keep_layout": False, "consistent": False, "average_words": None, "max_token_epsilon": None}
        return form.request.model_copy(update={**same, "mode": "experiment", "seed": 0})

    def _html(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(f"{template}.html.j2").render(values), status)

    async def failed(self, _: Request, error: Exception) -> Response:
        """An error that the page shows, in words that hold no text."""
        if isinstance(error, Refusal):
            return error.response()
        assert isinstance(error, LexveilError)
        return self._html("error", 422, message=str(error))


def create_page(
    session: ExploreSession, token: str, shown: Shown | None = None, background: Background | None = None
) -> Starlette:
    """The application.

    Args:
        token: without which nobody is answered.
        shown: rows of a file.
        background: what answers questions that take long.
    """
    pages = Pages(session, background or Background(), token, shown or Shown())
    routes: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
        (PAGE, "GET", pages.page),
        ("/api/sample", "GET", pages.sample),
        ("/api/draws", "POST", pages.draws),
        ("/api/token", "POST", pages.token_),
        ("/api/release", "POST", pages.release),
        ("/api/expected", "POST", pages.expected),
        ("/api/guesses", "POST", pages.guesses),
    ]
    app = Starlette(
        routes=[
            *(Route(path, function, methods=[method]) for path, method, function in routes),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={LexveilError: pages.failed, Refusal: pages.failed},
    )
    add_gates(app, TokenAccess(token), LOCAL, (BODY, BODY_SECONDS), Metrics())
    return app
