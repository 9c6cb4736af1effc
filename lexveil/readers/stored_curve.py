"""Disk cache of the expected recovery of a model's words.

A file is named by a hash of all its inputs: words, vectors, counts, mechanism, policy and code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.hashes import code_hash, sha256
from lexveil.base.runtime.tables import write_json
from lexveil.base.runtime.user_data import is_of_user, make_user_data
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.io.artifacts.mechanisms import CHOSEN_BY, Prepared
from lexveil.io.artifacts.model import Model
from lexveil.readers import public_words as public_recovery
from lexveil.readers.bands import ALL
from lexveil.readers.calibration import (
    LAST,
    STEPS_OF_AN_OCTAVE,
    Calibrated,
    Curve,
    Measure,
    OutOfReachError,
    epsilon_for,
    without_output,
)
from lexveil.readers.counted_words import below_least
from lexveil.readers.meaning import WordDistances, meaning_of, word_distances
from lexveil.readers.public_words import PublicWords
from lexveil.readers.shares import Expected, Fraction

# figures of the default model at its levels, by key, written by `benchmarks.protection --figures`
SHIPPED = paths.MODELS / "expected.json"
NEXT = 1e-9  # share of a step by which an epsilon may exceed a point and still count as equal to it


class NotComputedError(RequestError):
    """Error raised if expected recovery is not in the cache, and computing it is not allowed."""


@dataclass
class _Kept:
    """Contents of one file of the disk cache."""

    of: str
    blind: dict[str, Fraction]
    points: dict[int, Expected] = field(default_factory=dict)
    distances: WordDistances | None = None
    # epsilons at which searches start, by target and band
    starts: dict[str, float] = field(default_factory=dict)


@cache
def _adapter() -> TypeAdapter[_Kept]:
    return TypeAdapter(_Kept)


class StoredCurve(Curve):
    """Expected recovery at any epsilon, for a mechanism of a model. Computed points are cached in
    the model's project.

    Attributes:
        in_context: whether the contextual adversary runs in addition to the unigram adversary.
        public_key: hash of the inputs of the figures, except the code.

    Args:
        prepared: the mechanism, if it was built before.
        told: called with each epsilon before recovery at this epsilon is computed.

    Raises:
        MissingArtifactError: if no run has made the embedding or the word orders.
        ParameterError: if a parameter is invalid for the mechanism or the words.
    """

    def __init__(
        self,
        model: Model,
        mechanism: str,
        strategy: str,
        policy: Policy,
        prepared: Prepared | None = None,
        told: Callable[[float], None] | None = None,
    ) -> None:
        self._prepared = prepared or model.mechanism(mechanism, strategy, policy)
        self._told = told
        if self._prepared.mechanism.reads_texts:
            raise RequestError(
                f"{mechanism} by a language model (params.yaml: {CHOSEN_BY}): expected recovery "
                "would depend on the whole text, so it is not computed; give "
                f"{option('epsilon')} (docs/reference/levels.md, section By SmolLM2, has "
                "measured recovery)"
            )
        self._words_of = partial(PublicWords.of, model, mechanism, strategy, policy, self._prepared)
        self._cache_only = model.cache_only
        self.in_context = bool(model.bigram_files(strategy))
        self.public_key = _key(model, self._prepared, strategy, policy)
        key = hashlib.sha256(f"{self.public_key} {code_hash()}".encode()).hexdigest()
        self.file = model.project.recovery / f"{key}.json"
        stored = _load(self.file, key, self.public_key)
        self._kept = stored or _Kept(key, without_output(self.words.prior, self.words.bands))
        super().__init__(self._computed, self._kept.blind, self._kept.points)

    def _require_computing(self) -> None:
        if self._cache_only:
            raise NotComputedError("expected recovery at this epsilon is not in the cache")

    @cached_property
    def words(self) -> PublicWords:
        """The words whose recovery is expected. They are built at the first access, which takes
        time.

        Raises:
            NotComputedError: for a model with ``cache_only``.
        """
        self._require_computing()
        return self._words_of()

    def meaning(self, least: float, most: float) -> Meaning:
        """Return an explanation, for people, of token epsilons between ``least`` and ``most``.

        ``least`` is raised to the next point of the lattice, so that not every text length requires
        the computation of a new point.

        Raises:
            ParameterError: if the mechanism refuses one of them.
        """
        mechanism = self._prepared.mechanism
        points = [self.at(most)]
        above = math.ceil(STEPS_OF_AN_OCTAVE * math.log2(least) - NEXT)
        if -LAST <= above <= LAST and self.epsilon(above) < most:
            points.insert(0, self.point(above))
        if self._kept.distances is None and mechanism.is_proven:
            self._require_computing()
            with self._alone():
                self._kept.distances = self._kept.distances or word_distances(mechanism)
        return meaning_of(mechanism, points, self._kept.distances)

    def epsilon_for(
        self, target: float, band: str = ALL, measure: Measure | None = None
    ) -> Calibrated:
        """Return the calibrated epsilon for a target share, as
        ``lexveil.readers.calibration.epsilon_for``.

        A target below the share that an adversary names without any output is refused before the
        search, as in the stage bound_levels. The search starts at an epsilon computed from public
        facts, not from cached points, because an ε must not depend on earlier questions.
        """
        starts = self._kept.starts
        asked = f"{target} {band}"
        if asked not in starts and self.blind[band] < target < 1:
            least = self.words.counted.least()[band] if self.in_context else 0.0
            if target <= least:
                raise OutOfReachError(below_least(least, band), least)
            with self._alone():
                starts[asked] = self.words.epsilon_near(target, band)
        return epsilon_for(self, target, band, measure, starts.get(asked, 1.0))

    def check(self, epsilon: float) -> Expected:
        """Return the expected recovery at an epsilon for a new sample of words and new noise, as a
        check that is independent of the curve's own sample and noise.
        """
        return self.words.expected(epsilon, "check")

    def _computed(self, epsilon: float) -> Expected:
        self._require_computing()
        number = self.number(epsilon)
        with self._alone():
            if number not in self._kept.points:
                if self._told is not None:
                    self._told(epsilon)
                # Each point has an adversary of its own: a figure must not depend on earlier
                # questions.
                self._kept.points[number] = self.words.expected(epsilon)
        return self._kept.points[number]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the cache file against other processes, add the figures that other processes cached,
        and save new figures at the end.

        In a folder without write access, figures are not saved, so they are computed again each
        time.
        """
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, NotImplementedError):
                if is_of_user(self.file):
                    make_user_data()
                self.file.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(f"{self.file}.lock", fallback_to_soft=False))
            if theirs := _load(self.file, self._kept.of, self.public_key):
                self._kept.points |= theirs.points
                self._kept.starts |= theirs.starts
                self._kept.distances = self._kept.distances or theirs.distances
            yield
            with contextlib.suppress(OSError):
                write_json(asdict(self._kept), self.file)


def _key(model: Model, prepared: Prepared, strategy: str, policy: Policy) -> str:
    """Return the cache key: a hash of all inputs of the figures except the code."""
    counts = model.source.counts_file(SEGMENTATION_OF[strategy])
    bigrams = {name: sha256(file) for name, file in model.bigram_files(strategy).items()}
    of: dict[str, object] = {
        "mechanism": prepared.mechanism.name,
        "parameters": prepared.parameters,
        "strategy": SEGMENTATION_OF[strategy],
        "policy": asdict(policy),
        "made_with": model.hashes(strategy)
        | prepared.hashes()
        | bigrams
        | {"counts": sha256(counts)},
        "steps": STEPS_OF_AN_OCTAVE,
        "words": public_recovery.WORDS_OF_A_BAND,
    }
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def _load(file: Path, key: str, public: str) -> _Kept | None:
    """Load a cache file, or the figures that ship with the library. Return None if there are no
    figures, or if the file is broken, in which case it will be written again.
    """
    with contextlib.suppress(OSError, ValidationError):
        stored = _adapter().validate_json(file.read_bytes())
        if stored.of == key:
            return stored
    shipped = json.loads(SHIPPED.read_bytes())
    return _adapter().validate_python(shipped[public] | {"of": key}) if public in shipped else None
