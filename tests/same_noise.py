"""Two sources that differ in all that is not disclosed, and a world in which the mechanism answers
both alike.

What is published must then be the same, byte by byte: it is a function of output, parameters and
disclosed structure.
"""

import copy
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lexveil import MECHANISMS, Model
from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS
from lexveil.core.mechanisms.tem_context import TemContext, TextTokens
from lexveil.core.text.encode import Encoded, encode
from lexveil.io.artifacts.project import Project
from lexveil.readers.stored_curve import StoredCurve
from lexveil.release.distributed import parts
from lexveil.release.distributed.rewriter import Rewriter
from lexveil.release.engine import worker
from lexveil.release.engine.plan import TokenPlan, plan_tokens

PUBLIC = 0o044  # what others may read is published
# a word, an unknown word, a stop word, a collocation of two words
PERTURBED = "w"
UNKNOWN = "u"
STOP = "s"
PAIR = "c"
# Each row of the two sources by the classes of its tokens. Of S1 each collocation is two words.
ROWS = (
    ("www", "www"),
    ("ww", "sw"),  # stop words in the place of words
    ("wuw", "wuw"),  # one unknown word or another
    ("w", "s"),
    ("cw", "wc"),  # S2: the same words in all, and so the same epsilon
    ("", ""),
    ("wwww", "wwww"),
    ("wwww", "wwww"),  # once the text of the row before, once another
)

# Settings of a release that keeps no token of a text.
WITHOUT_KEPT_TOKENS: dict[str, Any] = {
    "mechanism": "tem",
    "strategy": "S3",
    "document_budget": 5.0,
    "stopwords": "perturb",
    "punctuation": "drop",
    "oov": "sample",
}


def sources(model: Model) -> tuple[list[str], list[str]]:
    """Texts of the same disclosed structure, under every strategy."""
    lexicons = {strategy: model.lexicon(strategy) for strategy in ("S1", "S3", "S4")}
    number = {strategy: np.arange(len(lexicon.tokens)) for strategy, lexicon in lexicons.items()}
    policy = Policy("perturb", "drop", "sample")
    known = [set(lexicon.tokens) for lexicon in lexicons.values()]
    stops = [
        word for word in ("the", "and", "with", "they") if all(word in tokens for tokens in known)
    ]
    shared = sorted(set.intersection(*known))
    # Short ones for one source, long ones for the other: no size may depend on them.
    words = sorted((word for word in shared if word.isalpha() and len(word) > 4), key=len)
    pairs = [
        token.replace("_", " ")
        for token in sorted(known[1] & known[2])
        if token.count("_") == 1 and all(part in known[0] for part in token.split("_"))
    ]

    def structure(text: str) -> list[tuple[list[int], int]]:
        found = []
        for strategy, lexicon in lexicons.items():
            encoded = encode([text], lexicon)
            plan = plan_tokens(encoded, number[strategy], policy)
            found.append((plan.action.tolist(), int(encoded.n_words[plan.pays].sum())))
        return found

    def text(
        pattern: str, own: Iterator[str], stop: Iterator[str], pair: Iterator[str], unknown: str
    ) -> str:
        """The first text of a pattern that is cut into just these tokens."""
        n_words = len(pattern) + pattern.count(PAIR)
        actions = [
            Action.SAMPLED.value if kind == UNKNOWN else Action.PERTURBED.value for kind in pattern
        ]
        while True:
            tokens = [{"w": own, "s": stop, "c": pair}[kind] for kind in pattern if kind != UNKNOWN]
            chosen = iter([next(source) for source in tokens])
            made = " ".join(unknown if kind == UNKNOWN else next(chosen) for kind in pattern)
            cut = structure(made)
            if len(cut[0][0]) == n_words and all(one[0] == actions for one in cut[1:]):
                return made

    streams = (itertools.cycle(words), itertools.cycle(words[::-1]))
    both: tuple[list[str], list[str]] = ([], [])
    for side, own in enumerate(streams):
        stop = itertools.cycle(stops)
        pair = itertools.cycle(pairs[:: 1 - 2 * side])
        unknown = ("zorblaxia", "xq'#!"[0:2] + "ufirlopanthimorexia")[side]
        for patterns in ROWS:
            both[side].append(text(patterns[side], own, stop, pair, unknown))
    both[0][-1] = both[0][-2]
    # What no token holds: capitals and white space, which are not kept.
    both[1][0] = "  ".join(word.title() for word in both[1][0].split())
    for first, second in zip(*both, strict=True):
        assert structure(first) == structure(second), (first, second)
    assert not set(both[0]) & (set(both[1]) - {""})
    return both


class SameAnswers:
    """Mechanism, draws, names and times that are the same for every run that begins by
    ``restart``."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.restart()
        for mechanism in MECHANISMS.values():
            patch.setattr(mechanism, "noise", lambda _, epsilon, __: np.zeros((len(epsilon), 1)))
            patch.setattr(mechanism, "replace", lambda _, ids, *__: self._answers(len(ids)))
        patch.setattr(TemContext, "replace_in_order", lambda _, texts, *__: self._in_context(texts))
        patch.setattr("lexveil.release.engine.worker.release_generator", lambda: self.generator)
        patch.setattr("secrets.token_hex", lambda n: f"{next(self.names):0{2 * n}x}")
        patch.setattr("lexveil.release.ledger.ledger.datetime", Clock)
        # What an epsilon means may have been computed before: that must move nothing, and other
        # tests must not find it.
        meaning = StoredCurve.meaning

        def aside(curve: StoredCurve, least: float, most: float) -> Any:
            given = self.given
            names = copy.copy(self.names)
            found = meaning(curve, least, most)
            self.given = given
            self.names = names
            return found

        patch.setattr(StoredCurve, "meaning", aside)
        patch.setattr(Project, "recovery", cast(Path, Project.recovery) / "same answers")
        # chunks end within the first rows, and differ
        patch.setattr("lexveil.io.formats.chunks.CHARACTERS_OF_A_CHUNK", 60)

    def restart(self) -> None:
        self.given, self.names = 0, itertools.count(1)
        self.generator = np.random.default_rng(0)

    def _in_context(self, texts: TextTokens) -> Any:
        drawn = np.where(texts.kind == DRAWN, 0, -1)
        drawn[texts.kind == DRAWN] = self._answers(int((texts.kind == DRAWN).sum()))
        follows = texts.kind == FOLLOWS
        drawn[follows] = drawn[texts.about[follows]]
        return drawn

    def _answers(self, n: int) -> Any:
        """Return answers by the position of tokens in the run, whatever the batches."""
        self.given += n
        return np.arange(self.given - n, self.given) * 7 % 101


def draw_by_place(planned: tuple[Encoded, TokenPlan], *_: object) -> Any:
    """Draw words that follow from the place of a token among the drawn tokens of its text, so that
    they are the same in every process and for every batch."""
    encoded, plan = planned
    drawn = plan.pays | (plan.action == Action.SAMPLED.value)
    before = np.append(0, np.cumsum(drawn))
    place = before[:-1] - before[encoded.offsets()[encoded.text_of]]
    return np.where(drawn, place * 7 % 101, -1)


def numbers_by_id(batch: Any) -> Any:
    """Return numbers that follow from the column id, in place of the random numbers by which a
    cluster orders and divides rows."""
    ids = np.array([int(value) for value in batch.column("id").to_pylist()], np.uint64)
    return ((ids * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)).astype(np.int64)


def answer_alike() -> None:
    """Make this process draw what every other process draws. The change is permanent, so call this
    only in a process that ends with the test.
    """
    worker._draw = draw_by_place
    parts.random_numbers = numbers_by_id


def answering(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Build the object that a worker process is sent, and let the process answer alike before."""
    if worker._draw is not draw_by_place:
        answer_alike()
    return make(*arguments)


def reach_workers(patch: pytest.MonkeyPatch) -> None:
    """Give the same answers to all worker processes, of this machine and of a cluster: each process
    answers alike once it gets the object that tells it what to do.
    """
    patch.setattr(worker, "_draw", draw_by_place)
    patch.setattr(parts, "random_numbers", numbers_by_id)
    sent = Rewriter.__reduce__
    patch.setattr(Rewriter, "__reduce__", lambda self: (answering, sent(self)))

    def of_worker(self: worker.BatchWorker) -> Any:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return answering, (partial(worker.BatchWorker, **values), ())

    patch.setattr(worker.BatchWorker, "__reduce__", of_worker, raising=False)


class Clock(datetime):
    """A time that stands still."""

    @classmethod
    def now(cls, _: Any = None) -> Any:  # type: ignore[override]
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def published(folder: Path) -> dict[str, bytes]:
    """All that others may read below a folder, and the names of all files in it."""
    files = sorted(Path(where, name) for where, _, names in os.walk(folder) for name in names)
    shown = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in files
        if file.stat().st_mode & PUBLIC
    }
    return shown | {"names": "\n".join(str(file.relative_to(folder)) for file in files).encode()}
