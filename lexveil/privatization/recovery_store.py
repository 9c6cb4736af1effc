"""What readers are expected to get back of a model's words, kept in a folder so that it is computed once.

A file is named by a hash of everything it follows from: words, vectors, counts, mechanism, policy and code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.artifacts.mechanisms import Prepared
from lexveil.privatization.model import Model
from lexveil.privatization.public_recovery import PublicWords
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.calibration import ALL, STEPS, Calibrated, Curve, Measure, epsilon_for, recovered
from lexveil.recovery.shares import Expected, Share
from lexveil.runtime.hashes import code_hash, sha256
from lexveil.runtime.tables import write_json
from lexveil.runtime.user_data import is_of_user, make_user_data


class StoredCurve(Curve):
    """What is expected at any epsilon of a model's mechanism; what is computed is kept at the model's place.

    Args:
        prepared: the mechanism, where it was made before.
        told: hears of each epsilon that is computed, before it is.

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
    ) -> None:
        self._prepared, self._told = prepared or model.mechanism(mechanism, strategy, policy), told
        self._words_of = partial(PublicWords.of, model, mechanism, strategy, policy, self._prepared)
        self.file = model.place.recovery / f"{_key(model, self._prepared, strategy, policy)}.json"
        self._reader: tuple[float, float, Adversary] | None = None
        blind, points = _kept(self.file) or (self.words.blind(), {})
        super().__init__(self._computed, blind, points)

    @cached_property
    def words(self) -> PublicWords:
        """The words whose recovery is expected."""
        return self._words_of()

    def epsilon_for(self, target: float, band: str = ALL, measure: Measure | None = None) -> Calibrated:
        """See ``lexveil.recovery.calibration.epsilon_for``."""
        near = 1.0 if self.points or target <= self.blind[band] else self.words.epsilon_near(target, band)
        if self.points:
            near = min(
                self.points.values(), key=lambda point: abs((measure or recovered)(point, band) - target)
            ).epsilon
        return epsilon_for(self, target, band, measure, near)

    def _computed(self, epsilon: float) -> Expected:
        if self._told is not None:
            self._told(epsilon)
        if self._reader is None or not self._reader[0] <= epsilon <= self._reader[1]:
            # Three points of the lattice: those around the one that is sought. At each of them a reader is exact.
            low, high = (self.epsilon(self.number(epsilon) + side) for side in (-1, 1))
            self._reader = low, high, self.words.adversary((low, high))
        found = self.words.expected(epsilon, adversary=self._reader[2])
        _keep(self.file, self.blind, {**self.points, self.number(epsilon): found})
        return found


def _key(model: Model, prepared: Prepared, strategy: str, policy: Policy) -> str:
    """The hash of what the figures follow from."""
    if model.packaged:
        (counts,) = model.packaged.files("counts.npy").values()
    else:
        counts = model.path(paths.embedding(SEGMENTATION_OF[strategy]) / "counts.npy")
    of: dict[str, Any] = {
        "mechanism": prepared.mechanism.name,
        "parameters": prepared.parameters,
        "strategy": SEGMENTATION_OF[strategy],
        "policy": asdict(policy),
        "made_with": model.hashes(strategy) | prepared.hashes() | {"counts": sha256(counts)},
        "code": code_hash(),
        "steps": STEPS,
    }
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def _kept(file: Path) -> tuple[dict[str, float], dict[int, Expected]] | None:
    """What a file holds; None if there is none, or it is no such file: it is written anew then."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return values["blind"], {int(number): _expected(point) for number, point in values["points"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _expected(values: dict[str, Any]) -> Expected:
    shares = {
        name: {band: Share(**share) for band, share in values[name].items()} for name in ("recovered", "unchanged")
    }
    return Expected(values["epsilon"], shares["recovered"], shares["unchanged"], values["mass"])


def _keep(file: Path, blind: Mapping[str, float], points: Mapping[int, Expected]) -> None:
    # A folder that cannot be written to costs the time of computing again, and nothing else.
    with contextlib.suppress(OSError):
        if is_of_user(file):
            make_user_data()
        write_json({"blind": dict(blind), "points": {str(n): asdict(point) for n, point in points.items()}}, file)
