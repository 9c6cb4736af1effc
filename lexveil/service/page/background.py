"""What takes seconds, in a process of its own beside the page: what a best-informed reader makes of outputs.

No text goes there: settings, numbers of words, epsilons.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lexveil.artifacts.mechanisms import Prepared
from lexveil.errors import LexveilError
from lexveil.privatization.settings import Settings, require_uniform_shares, resolve_settings, settings_of
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.calibration import recovered, unchanged
from lexveil.recovery.meaning import purpose_sentences
from lexveil.recovery.public_words import FEW, PublicWords
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.request import Request
from lexveil.runtime.crash import hide_messages
from lexveil.service.page.drawing import load_kernels, refusal
from lexveil.service.warm_model import WarmModel

IDLE = 10  # of nice: the page goes first
REMEMBERED = 256  # answers
GUESSES = 3  # of a reader, for each output


class Failed(str):
    """Why there is no answer."""


class ExpectedShares(NamedTuple):
    """Of perturbed words: shares that a best-informed reader names, that come out unchanged, and of rare ones named.

    Behind these stands what is hidden less by a purpose.
    """

    recovered: float
    unchanged: float
    rare: float
    purposes: list[str]


def expected_shares(name: str | None, request: Request, epsilon: float) -> ExpectedShares:
    """What a reader is expected to name of tokens of one epsilon."""
    model, settings, prepared = _prepared(name, request)
    curve = StoredCurve(model, settings.mechanism, settings.strategy, settings.policy, prepared, n_words=FEW)
    at = curve.at(epsilon)
    return ExpectedShares(recovered(at, "all"), unchanged(at, "all"), recovered(at, "rare"), purpose_sentences(at))


def base_epsilon(name: str | None, request: Request) -> float | None:
    """The base epsilon of a level of protection or of a recovery."""
    return resolve_settings(request, _model(name)).epsilon


def release_refusal(name: str | None, request: Request) -> str:
    """Why nothing would be released by these settings; empty if something would."""
    model = _model(name)
    return refusal(settings_of(request, model.params), model) or ""


def guesses(name: str | None, request: Request, epsilon: float, outputs: tuple[int, ...]) -> list[list[int]]:
    """The words, by their numbers, that a reader holds for likeliest behind each output."""
    ids = np.array(outputs, dtype=np.int64)
    reader = _reader(name, request, epsilon)
    return list(reader.candidates(ids, np.full(len(ids), epsilon), GUESSES).ids.tolist())


def kernels(name: str | None) -> bool:
    """See that compiled code is there to be loaded."""
    load_kernels(name)
    return True


def answered(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of one of these functions, or ``Failed``; in the process beside the page."""
    with contextlib.redirect_stderr(io.StringIO()):  # progress, which nobody waits for on a terminal
        try:
            return function(*arguments)
        except LexveilError as error:
            return Failed(error)


@lru_cache(2)
def _model(name: str | None) -> WarmModel:
    return WarmModel.find(name)


def _prepared(name: str | None, request: Request) -> tuple[WarmModel, Settings, Prepared]:
    model = _model(name)
    settings = settings_of(request, model.params)
    require_uniform_shares(settings, "what a reader names")
    return model, settings, model.mechanism(settings.mechanism, settings.strategy, settings.policy)


@lru_cache(2)
def _reader(name: str | None, request: Request, epsilon: float) -> Adversary:
    model, settings, prepared = _prepared(name, request)
    words = PublicWords.of(model, settings.mechanism, settings.strategy, settings.policy, prepared)
    return words.adversary((epsilon, epsilon))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the page, which ends this process
    hide_messages()
    os.nice(IDLE)


class Background:
    """Asks one question after the other in another process; of each function only the last one waits.

    Args:
        compute: answers at once, in place of that process, which is started with the first question.
    """

    def __init__(self, compute: Callable[..., Any] | None = None) -> None:
        self._compute = compute
        self._answers: OrderedDict[tuple[Callable[..., Any], tuple[Any, ...]], Future[Any]] = OrderedDict()
        self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, ``Failed``, or None as long as there is none; then it is worked out."""
        if self._compute is not None:
            return self._compute(function, *arguments)
        question = (function, arguments)
        if question not in self._answers:
            for other in [asked for asked in self._answers if asked[0] is function]:
                if self._answers[other].cancel():
                    del self._answers[other]
            self._answers[question] = self._process.submit(answered, function, *arguments)
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        future = self._answers[question]
        if not future.done():
            return None
        return Failed("this could not be worked out") if future.exception() else future.result()

    def close(self) -> None:
        """End the process."""
        self._process.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()
