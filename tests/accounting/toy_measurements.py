"""Small mechanisms and a small vocabulary, with what is proven of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats
from lexveil.core.accounting.budgets import (
    SEGMENTATION_OF,
    Action,
    DocumentBudget,
    PerDocument,
    Policy,
)
from lexveil.core.accounting.measurements import Measurement, NoBoundError, PrivacyBound
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.detectors.given import GivenSpans
from lexveil.core.mechanisms.registry import Mechanism, Space, build_mechanism
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.formats.chunks import Texts
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.engine import WordEngine, measurement_of
from lexveil.release.engine.plan import count_planned, form_of, source_of
from lexveil.release.engine.worker import allocate
from lexveil.release.settings import Settings

POLICY = Policy("perturb", "keep", "sample")
WORDS = ("fire", "new", "south", "wales", "police", "the", "water")
COLLOCATIONS = ("new_south_wales", "fire_police")
PLACES = np.array(
    [[0, 0], [1, 0], [0, 2], [3, 1], [1.5, 1], [4, 4], [0.5, 0.25], [2, 2.5], [5, 0]],
    dtype=np.float32,
)


def tokens_of(strategy: str) -> list[str]:
    return [*WORDS, *(COLLOCATIONS if strategy != "S1" else ())]


@cache
def toy(mechanism: str, n: int = len(WORDS)) -> Mechanism:
    """A mechanism over the first n words."""
    one = np.arange(n)
    orders = np.stack([one, one[::-1] * 2 % n]) if n % 2 else one[None]
    return build_mechanism(mechanism, Space(PLACES[:n], orders))


def settings_of(mechanism: str, strategy: str = "S3", **more: Any) -> Settings:
    given = {"seed": None, "policy": POLICY, "keep_layout": False} | more
    spending = {"base_epsilon": None, "budget": 6.0}
    spending |= {
        name: given.pop(name)
        for name in (*spending, "average_words", "max_token_epsilon")
        if name in given
    }
    total = spending.pop("budget")
    return Settings(mechanism, strategy, PerDocument(total=total, **spending), **given)


def measured(mechanism: str, strategy: str = "S3", n_columns: int = 1, **more: Any) -> Measurement:
    """The measurement of a run with a toy mechanism."""
    return measurement_of(
        settings_of(mechanism, strategy, **more), toy(mechanism), n_columns=n_columns
    )


def toy_engine(mechanism: str, strategy: str, **more: Any) -> WordEngine:
    """The engine itself, over the toy vocabulary."""
    tokens = tokens_of(strategy)
    collocations = Collocations.build(
        [["fire"], ["police"]], np.array([9.0]), [["new"], ["south"], ["wales"]], np.array([9.0])
    )
    lexicon = Lexicon.build(
        SEGMENTATION_OF[strategy], tokens, None if strategy == "S1" else collocations
    )
    settings = settings_of(mechanism, strategy, **more)
    vocabulary = Vocabulary.of(tokens, PLACES[: len(tokens)], settings.policy)
    prepared = Prepared(toy(mechanism, len(tokens)), vocabulary, {}, {})
    model = SimpleNamespace(
        lexicon=lambda _: lexicon,
        mechanism=lambda *_: prepared,
        structure=lambda *_: None,
        average_words=lambda: 3.0,
    )
    return WordEngine(settings, model)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Disclosed structure of a text, which is not hidden; n tokens, those of all text columns one
    after the other.

    Attributes:
        action: (n,) ``Action`` of each token: its fate.
        epsilon: (n,) ε_i; 0 where nothing is spent on the token.
        others: other values that neighbours share, by name.
    """

    action: npt.NDArray[np.int8]
    epsilon: Floats
    others: dict[str, list[Any]]

    def differences(self, other: Structure) -> list[str]:
        """Return the differences of two texts in values that neighbours must share."""
        if len(self.action) != len(other.action):
            return ["the number of tokens"]
        one, two = (
            {
                "the fate of a token": each.action.tolist(),
                "the ε_i": each.epsilon.tolist(),
                **each.others,
            }
            for each in (self, other)
        )
        return [name for name in one if one[name] != two[name]]


def between(
    measurement: Measurement, first: Structure, second: Structure, distances: Floats
) -> PrivacyBound:
    """The bound of two texts, whose structures are compared first.

    Args:
        distances: (n,) of the perturbed tokens, in text order.

    Raises:
        NoBoundError: if they are not neighbours, or as ``Measurement.bound``.
    """
    if differences := first.differences(second):
        raise NoBoundError(f"the texts are not neighbours: they differ in {', '.join(differences)}")
    return measurement.bound(distances, first.epsilon[first.action == Action.PERTURBED.value])


def structures_of(
    engine: WordEngine,
    rows: Texts,
    budget: DocumentBudget,
    given: Sequence[GivenSpans] | None = None,
) -> list[Structure]:
    """The disclosed structure of each document; ``given`` as of ``Batch``."""
    batch = Batch(rows, [()] * len(rows), given=given)
    encoded, plan = engine.worker().plan(batch)
    counts = count_planned(encoded, plan, batch.document, len(batch))
    document = batch.document[encoded.text_of]
    epsilon = np.where(
        plan.pays, allocate(engine.settings.strategy, budget, counts, engine.shares)[document], 0.0
    )
    epsilon *= 1 if plan.parts is None else plan.parts
    leader = np.arange(len(document)) if plan.leader is None else plan.leader
    structures = []
    for number in range(len(batch)):
        own = np.flatnonzero(document == number)
        kept = own[plan.action[own] == Action.KEPT.value]
        redrawn = own[plan.action[own] == Action.DIGITS.value].tolist()
        others = {
            "which tokens are repeated": (leader[own] - own[:1]).tolist(),
            "the column of a token": batch.column[encoded.text_of[own]].tolist(),
            "a kept word": [encoded.words[first] for first in encoded.first_word[kept].tolist()],
            "what was found": []
            if encoded.found is None
            else [encoded.found.names()[token] for token in own.tolist()],
            "the form of a number": [
                form_of(source_of(encoded, batch.texts, token)) for token in redrawn
            ],
        }
        structures.append(Structure(plan.action[own], epsilon[own], others))
    return structures
