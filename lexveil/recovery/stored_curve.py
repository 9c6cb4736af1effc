"""What readers are expected to get back of a model's words, kept in a folder so that it is computed once.

A file is named by a hash of everything it follows from: words, vectors, counts, mechanism, policy and code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.expected_recovery import Meaning
from lexveil.artifacts.mechanisms import Prepared
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.recovery import public_words as public_recovery
from lexveil.recovery.bands import ALL, BANDS, BANDS_OF
from lexveil.recovery.calibration import LAST, STEPS, Calibrated, Curve, Measure, epsilon_for
from lexveil.recovery.distances import Spread, WordDistances, word_distances
from lexveil.recovery.meaning import meaning_of
from lexveil.recovery.public_words import PublicWords
from lexveil.recovery.purposes import Told
from lexveil.recovery.shares import Expected, Share
from lexveil.runtime.hashes import code_hash, sha256
from lexveil.runtime.tables import write_json
from lexveil.runtime.user_data import is_of_user, make_user_data

ROUNDING = 1e-9  # by which a share may lie outside of its interval, where it is 0 or 1
TOLD = [field.name for field in fields(Told)]
NEXT = 1e-9  # of a step: an epsilon so near above a point of the lattice is that point's


class NotComputed(RequestError):
    """What readers are expected to get back was not computed here yet, and is not to be computed now."""


class StoredCurve(Curve):
    """What is expected at any epsilon of a model's mechanism; what is computed is kept at the model's place.

    Args:
        prepared: the mechanism, where it was made before.
        told: hears of each epsilon that is computed, before it is.
        n_words: of each band, by which recovery is estimated; None is ``public_recovery.WORDS``.

    Raises:
        MissingArtifact: if no run has made the embedding or the word orders.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """

    def __init__(
        self,
        model: Model,
        mechanism: str,
        strategy: str,
        policy: Policy,
        prepared: Prepared | None = None,
        told: Callable[[float], None] | None = None,
        n_words: int | None = None,
    ) -> None:
        self._prepared, self._told = prepared or model.mechanism(mechanism, strategy, policy), told
        self._words_of = partial(PublicWords.of, model, mechanism, strategy, policy, self._prepared)
        self._n_words, self._cache_only = n_words or public_recovery.WORDS, model.cache_only
        self._key = _key(model, self._prepared, strategy, policy, self._n_words)
        self.file = model.project.recovery / f"{self._key}.json"
        kept = _kept(self.file, self._key) or _Kept(self.words.blind(), {}, None)
        self._distances = kept.distances
        super().__init__(self._computed, kept.blind, kept.points)

    def _require_computing(self) -> None:
        if self._cache_only:
            raise NotComputed("what a reader is expected to get back at this epsilon was not computed here yet")

    @cached_property
    def words(self) -> PublicWords:
        """The words whose recovery is expected: who asks for them computes.

        Raises:
            NotComputed: of a model with ``cache_only``.
        """
        self._require_computing()
        return self._words_of()

    def meaning(self, least: float, most: float) -> Meaning:
        """What epsilons of a token between two mean.

        The smaller one is taken up to the next point of the lattice, so that not every length of a text costs a point.

        Raises:
            ParameterError: if the mechanism refuses one of them.
        """
        mechanism, found = self._prepared.mechanism, [self.at(most)]
        above = math.ceil(STEPS * math.log2(least) - NEXT)
        if -LAST <= above <= LAST and self.epsilon(above) < most:
            found.insert(0, self.point(above))
        if self._distances is None and mechanism.is_proven:
            self._require_computing()
            self._distances = word_distances(mechanism)
            self._keep()
        return meaning_of(mechanism, found, self._distances)

    def epsilon_for(self, target: float, band: str = ALL, measure: Measure | None = None) -> Calibrated:
        """See ``lexveil.recovery.calibration.epsilon_for``.

        The search begins where public things say and not at what is kept: an ε must not depend on earlier questions.
        """
        near = self.words.epsilon_near(target, band) if self.blind[band] < target < 1 else 1.0
        return epsilon_for(self, target, band, measure, near)

    def _computed(self, epsilon: float) -> Expected:
        self._require_computing()
        if self._told is not None:
            self._told(epsilon)
        # Each point by a reader of its own: what is found must not depend on what was asked before.
        found = self.words.expected(epsilon, n_words=self._n_words)
        self.points[self.number(epsilon)] = found
        self._keep()
        return found

    def check(self, epsilon: float) -> Expected:
        """What is expected at an epsilon of other words and other noise than those of the curve."""
        return self.words.expected(epsilon, "check", n_words=self._n_words)

    def _keep(self) -> None:
        # A folder that cannot be written to costs the time of computing again, and nothing else.
        with contextlib.suppress(OSError):
            if is_of_user(self.file):
                make_user_data()
            kept: dict[str, object] = {"of": self._key, "blind": dict(self.blind)}
            kept["points"] = {str(number): asdict(point) for number, point in self.points.items()}
            if self._distances is not None:
                kept["distances"] = {name: list(one) for name, one in self._distances._asdict().items()}
            write_json(kept, self.file)


class _Kept(NamedTuple):
    """What a file holds."""

    blind: dict[str, float]
    points: dict[int, Expected]
    distances: WordDistances | None


def _key(model: Model, prepared: Prepared, strategy: str, policy: Policy, n_words: int) -> str:
    """The hash of what the figures follow from."""
    if model.packaged:
        (counts,) = model.packaged.files("counts.npy").values()
    else:
        counts = model.path(paths.embedding(SEGMENTATION_OF[strategy]) / "counts.npy")
    of: dict[str, object] = {
        "mechanism": prepared.mechanism.name,
        "parameters": prepared.parameters,
        "strategy": SEGMENTATION_OF[strategy],
        "policy": asdict(policy),
        "made_with": model.hashes(strategy) | prepared.hashes() | {"counts": sha256(counts)},
        "code": code_hash(),
        "steps": STEPS,
        "words": n_words,
    }
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def _kept(file: Path, key: str) -> _Kept | None:
    """What a file holds; None if there is none, or it is no such file: it is written anew then."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if values["of"] != key:
            return None
        blind = {band: _share(values["blind"][band]) for band in BANDS_OF}
        points = {int(number): _expected(int(number), point) for number, point in values["points"].items()}
        distances = values.get("distances")
        return _Kept(blind, points, None if distances is None else _distances(distances))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _expected(number: int, values: Mapping[str, Any]) -> Expected:
    if not -LAST - 1 <= number <= LAST + 1 or values["epsilon"] != Curve.epsilon(number):
        raise ValueError(number)
    recovered, unchanged = (
        {band: _interval(values[name][band]) for band in BANDS} for name in ("recovered", "unchanged")
    )
    mass = {band: _share(values["mass"][band]) for band in BANDS}
    told = {name: Told(**{key: _share(one[key]) for key in TOLD}) for name, one in values.get("told", {}).items()}
    return Expected(values["epsilon"], recovered, unchanged, mass, told)


def _interval(values: Mapping[str, Any]) -> Share:
    share = Share(int(values["n"]), *(_share(values[name]) for name in ("share", "low", "high")))
    if share.n < 0 or not share.low - ROUNDING <= share.share <= share.high + ROUNDING:
        raise ValueError(values)
    return share


def _distances(values: Mapping[str, Any]) -> WordDistances:
    spreads = [Spread(*map(float, values[name])) for name in WordDistances._fields]
    if not all(0 <= spread.median <= spread.worst < math.inf for spread in spreads):
        raise ValueError(values)
    return WordDistances(*spreads)


def _share(value: Any) -> float:
    if not 0 <= float(value) <= 1:
        raise ValueError(value)
    return float(value)
