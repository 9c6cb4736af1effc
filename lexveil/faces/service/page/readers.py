"""Computation of an adversary's guesses for the explore page. It takes seconds, so it runs in a
thread of its own.

The code never gets a text, only settings, vocabulary indices of words, and epsilons.
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

REMEMBERED = 256  # number of answers of each kind in the cache
GUESSES = 3  # number of guesses of the adversary for each output


class ExpectedShares(NamedTuple):
    """The expected results of an adversary by which protection levels are defined: the share of
    perturbed content words that a Bayes-optimal adversary guesses, the share that stays unchanged,
    and the share of rare words that the adversary guesses.

    Attributes:
        purposes: sentences about how much less a purpose protects.
        aside: remark about the figures.
        linkage: sentence about how often an adversary identifies the source of an output.
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
    """Return the shares of words that an adversary is expected to guess if all tokens have the same
    epsilon, for example the epsilon of a protection level.
    """
    model, plain, prepared = _prepared(name, request)
    curve = StoredCurve(model, plain.mechanism, plain.strategy, plain.policy, prepared)
    at = curve.at(epsilon)
    named = recovered(at, "content")
    rare = recovered(at, "rare")
    aside = recovery_at(at).aside
    resolved = resolve_settings(request, model) if level is None else at_level(plain, model, level)
    if (shown := resolved.protection) is not None:  # in the words of the menu and of records
        named = shown.content
        rare = shown.rare
        aside = f", {shown.reader}"
    linkage = linkage_of(resolved, model).sentence
    of_purposes = purpose_sentences(at)
    return ExpectedShares(named, unchanged(at, "content"), rare, of_purposes, aside, linkage)


@lru_cache(REMEMBERED)
def base_epsilon(name: str | None, request: Request) -> float | None:
    """Return the base epsilon that gives the protection level or the recovery (share of guessed
    words) that a request names.
    """
    return resolve_settings(request, _model(name)).base_epsilon


@lru_cache(REMEMBERED)
def linkage_said(name: str | None, request: Request) -> str:
    """Return a sentence about how often an adversary identifies the source of an output."""
    model = _model(name)
    return linkage_of(resolve_settings(request, model), model).sentence


@lru_cache(REMEMBERED)
def release_refusal(name: str | None, request: Request) -> str:
    """Return the reason why a release with these settings would be refused, or "" if it would not
    be refused.
    """
    model = _model(name)
    return refusal(settings_of(request, model.project), model) or ""


@lru_cache(REMEMBERED)
def guesses(
    name: str | None, request: Request, epsilon: float, outputs: tuple[int, ...]
) -> list[list[int]]:
    """Return, for each output word, the words that an adversary considers its likeliest sources,
    all given as vocabulary indices.
    """
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
