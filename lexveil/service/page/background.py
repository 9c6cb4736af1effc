"""What takes seconds, in a process of its own beside the page: what a best-informed reader makes of outputs.

No text goes there: settings, numbers of words, epsilons.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.pool import Pool
from typing import Any, NamedTuple

import numpy as np

from lexveil.errors import LexveilError
from lexveil.privatization.settings import require_uniform_shares, resolve_settings, settings_of
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.calibration import recovered, unchanged
from lexveil.recovery.meaning import purpose_sentences
from lexveil.recovery.public_words import FEW, PublicWords
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.request import Request
from lexveil.runtime.crash import hide_messages
from lexveil.service.page.drawing import load_kernels
from lexveil.service.page.release import refusal
from lexveil.service.warm_model import WarmModel

IDLE = 10  # of nice: the page goes first
REMEMBERED = 256  # answers
GUESSES = 3  # of a reader, for each output


class Expected(NamedTuple):
    """Of perturbed words: shares that a best-informed reader names, that come out unchanged, and of rare ones named.

    Behind these stands what is hidden less by a purpose.
    """

    recovered: float
    unchanged: float
    rare: float
    purposes: list[str]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one model's mechanism.

    Attributes:
        kind: ``expected``: at ``epsilon`` of a token. ``epsilon``: the base epsilon of a recovery. ``guesses``: the
            words, by their numbers, that a reader holds for likeliest behind ``outputs``. ``release``: why nothing
            would be released by these settings, or "". ``kernels``: that compiled code is there to be loaded.
        request: with one budget; None of ``kernels``.
    """

    kind: str
    model: str | None
    request: Request | None = None
    epsilon: float | None = None
    outputs: tuple[int, ...] = ()


class Failed(str):
    """Why there is no answer."""


def answer(question: Question) -> Any:
    """Answer a question; in the process beside the page."""
    with contextlib.redirect_stderr(io.StringIO()):  # progress, which nobody waits for on a terminal
        try:
            return _answer(question)
        except LexveilError as error:
            return Failed(error)


def _answer(question: Question) -> Any:
    if question.kind == "kernels":
        load_kernels(question.model)
        return True
    model, request = _model(question.model), question.request
    assert request is not None
    if question.kind == "epsilon":
        return resolve_settings(request, model).epsilon
    settings = settings_of(request, model.params)
    if question.kind == "release":
        return refusal(settings, model) or ""
    require_uniform_shares(settings, "what a reader names")
    prepared = model.mechanism(settings.mechanism, settings.strategy, settings.policy)
    epsilon = question.epsilon
    assert epsilon is not None
    if question.kind == "expected":
        curve = StoredCurve(model, settings.mechanism, settings.strategy, settings.policy, prepared, n_words=FEW)
        expected = curve.at(epsilon)
        return Expected(
            recovered(expected, "all"),
            unchanged(expected, "all"),
            recovered(expected, "rare"),
            purpose_sentences(expected),
        )
    reader = _reader(question.model, request, epsilon)
    outputs = np.array(question.outputs, dtype=np.int64)
    return reader.candidates(outputs, np.full(len(outputs), epsilon), GUESSES).ids.tolist()


@lru_cache(2)
def _model(name: str | None) -> WarmModel:
    return WarmModel.find(name)


@lru_cache(2)
def _reader(name: str | None, request: Request, epsilon: float) -> Adversary:
    model = _model(name)
    settings = settings_of(request, model.params)
    prepared = model.mechanism(settings.mechanism, settings.strategy, settings.policy)
    words = PublicWords.of(model, settings.mechanism, settings.strategy, settings.policy, prepared)
    return words.adversary((epsilon, epsilon))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the page, which ends this process
    hide_messages()
    os.nice(IDLE)


class Background:
    """Asks one question after the other in another process; of each kind only the last one waits.

    Args:
        compute: answers; by default in a process that is started with the first question.
    """

    def __init__(self, compute: Callable[[Question], Any] | None = None) -> None:
        self._compute = compute
        self._pool: Pool | None = None
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._waiting: dict[str, Question] = {}
        self._asked: Question | None = None

    def ask(self, question: Question) -> Any:
        """The answer, ``Failed``, or None as long as there is none; then it is worked out."""
        with self._lock:
            if question in self._known:
                self._known.move_to_end(question)
                return self._known[question]
            if question != self._asked:
                self._waiting[question.kind] = question
            self._next()
            return self._known.get(question)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.terminate()

    def _next(self) -> None:
        """Ask the next question, with the lock held."""
        if self._asked is not None or not self._waiting:
            return
        question = self._waiting.pop(next(iter(self._waiting)))
        if self._compute is not None:
            self._keep(question, self._compute(question))
            return
        self._asked = question
        if self._pool is None:
            self._pool = multiprocessing.get_context("spawn").Pool(1, _begin)
        self._pool.apply_async(
            answer,
            (question,),
            callback=lambda found: self._done(question, found),
            error_callback=lambda _: self._done(question, Failed("this could not be worked out")),
        )

    def _done(self, question: Question, found: Any) -> None:
        with self._lock:
            self._keep(question, found)
            self._asked = None
            self._next()

    def _keep(self, question: Question, found: Any) -> None:
        self._known[question] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
