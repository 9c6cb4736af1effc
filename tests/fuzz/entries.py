"""Any request of a caller is served or refused in one line: parameters, command lines, API arguments, records.

Bytes become a request by ``Draws``, so that a search guided by coverage can change one part of it at a time. The
current folder is a project that has run.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import ValidationError

from lexveil.accounting.budgets import DocumentBudget
from lexveil.accounting.record import PrivacyRecord
from lexveil.api import inspect, privatize
from lexveil.artifacts.model import Model
from lexveil.cli import main
from lexveil.config import Params, load_params, parse_params
from lexveil.errors import LexveilError
from lexveil.inbox.archive import RECORD, read_record
from lexveil.ledger import anchor
from lexveil.ledger.verification import verify
from lexveil.lineage.release_lineage import read_record as lineage_record
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.parameters import Section, fields_of, section_of
from lexveil.privatization.release.preconditions import find_valid_audit
from lexveil.privatization.settings import settings_of
from lexveil.request import Request

WORDS = ("the", "market", "was", "open", "Zanzibar", "7.0", "a@b.de", "...", "\u0301", "\u200b", "\n", " ")
OPTIONS = (
    "--mechanism --strategy --epsilon --document-budget --text-column --subject-column --mode --seed --consistent "
    "--keep-layout --stopwords --punctuation --oov --format --workers --json --top --subject --record --samples "
    "--words -o - -- --help madlib tem S1 S3 text out.jsonl in.jsonl 1e9 0 -1 nan 5 release experiment keep drop sample"
).split()
COPIED = (".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".jsonl.gz", "")


LEDGER = Path(".lexveil/ledger")
AUDIT = {"parameters": {}, "violation": False, "epsilon": 1.0, "mode": "release"}


class Draws:
    """Choices that bytes make, one after the other; without bytes left, always the first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, below: int) -> int:
        """A number from 0."""
        self.at += 1
        return self.data[self.at - 1] % below if self.at <= len(self.data) else 0

    def one_of(self, choices: Sequence[Any]) -> Any:
        """One of some things."""
        return choices[self.number(len(choices))]

    def text(self) -> str:
        """A text of known words, or of any characters, unpaired surrogates too."""
        if self.number(2):
            return " ".join(self.one_of(WORDS) for _ in range(self.number(8)))
        size = self.number(24)
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece.decode("utf-8", "surrogateescape" if self.number(8) == 7 else "ignore")

    def rest(self) -> bytes:
        """All bytes that are left."""
        left, self.at = self.data[self.at :], len(self.data)
        return left

    def value(self, depth: int = 2) -> Any:
        """A value of JSON, YAML or Python."""
        simple: list[Callable[[], Any]] = [
            lambda: None,
            self.text,
            lambda: self.number(256) - 128,
            lambda: self.number(2) == 1,
            lambda: self.one_of((0.5, 1e-12, 1e300, float("nan"), float("inf"), -0.0, 10.0)),
            lambda: 10 ** self.number(40),
        ]
        if depth:
            simple += [
                lambda: [self.value(depth - 1) for _ in range(self.number(4))],
                lambda: {self.text(): self.value(depth - 1) for _ in range(self.number(4))},
                lambda: self.text().encode("utf-8", "surrogateescape"),
            ]
        return self.one_of(simple)()


@cache
def model() -> Model:
    """Of the current folder."""
    return Model.load(Path())


def check_request(data: bytes) -> bool:
    """See that a request is served or refused.

    Returns:
        Whether it was served.
    """
    draws = Draws(data)
    kind: Callable[[Draws], None] = draws.one_of(
        (_parameters, _changed_parameters, _command_line, _texts, _file, _record, _other_records)
    )
    try:
        kind(draws)
    except LexveilError as error:
        message = str(error)
        assert message and len(message) < 4000 and "Traceback" not in message
        return False
    return True


def _parameters(draws: Draws) -> None:
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        Path(file.name).write_bytes(draws.rest())
        load_params(Path(file.name))


def _changed_parameters(draws: Draws) -> None:
    """The parameters of the project, some of them changed."""
    raw = model().params.model_dump(by_alias=True)
    for _ in range(1 + draws.number(3)):
        section: type[Section] = Params
        values = raw
        while True:
            names = [*fields_of(section), "unknown"]
            name = draws.one_of(names)
            inner = section_of(fields_of(section)[name]) if name in fields_of(section) else None
            if inner is None or not isinstance(values.get(name), dict) or draws.number(8) == 0:
                values[name] = draws.value()
                break
            section, values = inner, values[name]
    parse_params(raw)


def _command_line(draws: Draws) -> None:
    verb = draws.one_of(" ".join(main.VERBS.values()).split())
    argv = [verb, *(draws.one_of(OPTIONS) if draws.number(4) else draws.text() for _ in range(draws.number(10)))]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main.parse(argv)
        except SystemExit as end:
            assert end.code == 2
    assert said.getvalue().count("\n") <= 1


def _how(draws: Draws) -> dict[str, Any]:
    """Options as any caller could give them, of which most are right."""
    right: dict[str, Sequence[Any]] = {
        "mechanism": ("tem", "madlib", *MECHANISMS, "none", "nothing"),
        "strategy": ("S1", "S2", "S3", "S4", "none", "S9"),
        "epsilon": (10.0, None, 0.1, 1e-9, 1e9, 0, -1.0, float("nan"), float("inf")),
        "document_budget": (None, 5.0, 1e-9, 1e12, float("nan")),
        "average_words": (None, 20.0, "data", 0, "other"),
        "max_token_epsilon": (None, 1.0, "none", -1.0, "other"),
        "without_guarantee": (False, True),
        "mode": ("experiment", "release", "other", None),
        "seed": (None, 0, 2**62, -1, 2**70),
        "keep_layout": (False, True),
        "consistent": (False, True),
        "stopwords": (None, "paper", "perturb", "keep", "drop", "sample", "other"),
        "punctuation": (None, "perturb", "keep", "drop", "sample"),
        "oov": (None, "keep", "drop", "sample", "perturb"),
    }
    how = {name: draws.one_of(choices) for name, choices in right.items()}
    if draws.number(8) == 7:
        how[draws.one_of([*right])] = draws.value()
    return how


def _texts(draws: Draws) -> None:
    how = _how(draws)
    values: Any = [draws.value(1) if draws.number(16) == 15 else draws.text() for _ in range(draws.number(5))]
    subjects = None if draws.number(2) else [draws.value(1) for _ in values]
    if draws.number(16) == 15:
        values = draws.value()
    if settings_of(Request.of(how), model().params).mode != "experiment" and draws.number(8):
        return  # the ledger takes its time
    done = privatize(values, subjects=subjects, workers=1, project=model(), **how)
    assert len(done.values) == len(values)
    json.dumps(done.record.to_dict())


def _file(draws: Draws) -> None:
    how = _how(draws)
    column, subject = draws.one_of(("text", "id", "", "a b")), draws.one_of((None, "id", "text", "\0"))
    with tempfile.NamedTemporaryFile(suffix=draws.one_of(COPIED)) as file:
        Path(file.name).write_bytes(draws.rest())
        inspect(file.name, text_column=column, subject_column=subject, workers=1, project=model(), **how)


@cache
def _example() -> dict[str, Any]:
    options: dict[str, Any] = {"mechanism": "madlib", "strategy": "S1", "epsilon": 10.0, "mode": "experiment"}
    return privatize(["the market was open"], project=model(), **options).record.to_dict()


def _changed(values: Any, draws: Draws) -> Any:
    """The same values of JSON, some of them others."""
    changed = json.loads(json.dumps(values))
    for _ in range(draws.number(4)):
        part = changed
        while isinstance(part, dict) and part:
            name = draws.one_of([*part, "unknown"])
            if not isinstance(part.get(name), dict) or draws.number(4) == 0:
                part[name] = draws.value()
                break
            part = part[name]
    return changed


def _record(draws: Draws) -> None:
    with contextlib.suppress(ValidationError):
        PrivacyRecord.model_validate(_changed(_example(), draws))


def _other_records(draws: Draws) -> None:
    """What is read of records, audits and anchors that lie beside outputs and ledgers."""
    readers: dict[str, tuple[dict[str, Any], Callable[[Path], object]]] = {
        RECORD: (
            {**_example(), "publication": {"id_column": "id"}, "withdrawn": 0},
            lambda file: read_record(file.parent),
        ),
        "out.record.json": (_example(), lineage_record),
        "ledger.record.json": ({"release": {"id": "a", "head": "0" * 64}}, lambda file: verify(LEDGER, [file])),
        "tem-S1-10.json": (AUDIT, _audit),
        "ledger.anchor": ({"entries": 3, "head": "0" * 64, "salt": "0" * 64}, anchor.read),
    }
    name = draws.one_of([*readers])
    values, read = readers[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        if draws.number(4):
            file.write_text(json.dumps(_changed(values, draws), default=str), encoding="utf-8")
        else:
            file.write_bytes(draws.one_of((b"", b"[" * 100_000, b'{"a": ' * 100_000)) + draws.rest())
        read(file)


def _audit(file: Path) -> object:
    settings = settings_of(Request(mechanism="tem", strategy="S1", epsilon=1.0), model().params)
    of_audits = SimpleNamespace(params=model().params, project=SimpleNamespace(audits=file.parent))
    engine: Any = SimpleNamespace(settings=settings, model=of_audits, prepared=SimpleNamespace(parameters={}))
    return find_valid_audit(engine, DocumentBudget(1.0, 1.0), model().reference("S1"), {})
