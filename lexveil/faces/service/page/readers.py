"""The adversary of the explore page: it takes seconds, so it runs in a thread of its own.

It is told of no text: settings, numbers of words, epsilons.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lexveil.core.protection import LevelName
from lexveil.faces.service.page.drawing import refusal
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.request import Request
from lexveil.readers.adversary import Adversary
from lexveil.readers.calibration import recovered, unchanged
from lexveil.readers.meaning import purpose_sentences, recovery_at
from lexveil.readers.public_words import PublicWords
from lexveil.readers.stored_curve import StoredCurve
from lexveil.release.linkage import linkage_of
from lexveil.release.settings import (
    Settings,
    at_level,
    require_uniform_shares,
    resolve_settings,
    settings_of,
)

REMEMBERED = 256  # answers of each kind
GUESSES = 3  # of a reader, for each output


class ExpectedShares(NamedTuple):
    """The shares of perturbed content words, of which levels of protection speak: the share that a
    best-informed reader names, the share that comes out unchanged, and the share of rare words that
    is named.

    The further fields say what a purpose hides less, what is to be said of the figures, and how
    often a reader finds the source of an output among others.
    """

    recovered: float
    unchanged: float
    rare: float
    purposes: list[str]
    aside: str
    linkage: str


@lru_cache(REMEMBERED)
def expected_shares(
    name: str | None, request: Request, epsilon: float, level: LevelName | None
) -> ExpectedShares:
    """Return the shares of words that a reader is expected to name of tokens of one epsilon, which
    may be the epsilon of a level of protection.
    """
    model, plain, prepared = _prepared(name, request)
    curve = StoredCurve(model, plain.mechanism, plain.strategy, plain.policy, prepared)
    at = curve.at(epsilon)
    named = recovered(at, "content")
    rare = recovered(at, "rare")
    aside = recovery_at(at).aside
    resolved = resolve_settings(request, model) if level is None else at_level(plain, model, level)
    if (shown := resolved.protection) is not None:  # as the menu and records say it
        named = shown.content
        rare = shown.rare
        aside = f", {shown.reader}"
    linkage = linkage_of(resolved, model).sentence
    of_purposes = purpose_sentences(at)
    return ExpectedShares(named, unchanged(at, "content"), rare, of_purposes, aside, linkage)


@lru_cache(REMEMBERED)
def base_epsilon(name: str | None, request: Request) -> float | None:
    """Return the base epsilon of a level of protection or of a recovery."""
    return resolve_settings(request, _model(name)).base_epsilon


@lru_cache(REMEMBERED)
def linkage_said(name: str | None, request: Request) -> str:
    """Return the sentence that says how often a reader finds the source of an output again."""
    model = _model(name)
    return linkage_of(resolve_settings(request, model), model).sentence


@lru_cache(REMEMBERED)
def release_refusal(name: str | None, request: Request) -> str:
    """Why nothing would be released by these settings; empty if something would."""
    model = _model(name)
    return refusal(settings_of(request, model.project), model) or ""


@lru_cache(REMEMBERED)
def guesses(
    name: str | None, request: Request, epsilon: float, outputs: tuple[int, ...]
) -> list[list[int]]:
    """Return the words, by their numbers, that a reader holds for likeliest behind each output."""
    ids = np.array(outputs, dtype=np.int64)
    reader = _reader(name, request, epsilon)
    return list(reader.candidates(ids, np.full(len(ids), epsilon), GUESSES).ids.tolist())


@lru_cache(2)
def _model(name: str | None) -> WarmModel:
    return WarmModel.find(name)


def _prepared(name: str | None, request: Request) -> tuple[WarmModel, Settings, Prepared]:
    model = _model(name)
    settings = settings_of(request, model.project)
    require_uniform_shares(settings, "what a reader names")
    return model, settings, model.mechanism(settings.mechanism, settings.strategy, settings.policy)


@lru_cache(2)
def _reader(name: str | None, request: Request, epsilon: float) -> Adversary:
    model, settings, prepared = _prepared(name, request)
    words = PublicWords.of(model, settings.mechanism, settings.strategy, settings.policy, prepared)
    return words.adversary((epsilon, epsilon))
