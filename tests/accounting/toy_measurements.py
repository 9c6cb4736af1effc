"""Small mechanisms and a small vocabulary, with what is proven of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import SEGMENTATION_OF, Action, DocumentBudget, Policy
from lexveil.accounting.measurements import Measurement, NoBound, PrivacyBound
from lexveil.accounting.shares import BudgetShares
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.mechanisms import Prepared
from lexveil.detectors.given import GivenSpans
from lexveil.formats.chunks import Texts
from lexveil.mechanisms.registry import MECHANISMS, Mechanism, build_mechanism
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.engine import Engine, measurement_of
from lexveil.privatization.engine.plan import count_planned, form_of, source_of
from lexveil.privatization.engine.worker import allocate
from lexveil.privatization.settings import Settings
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Encoded, Lexicon
from lexveil.text.render import _capitals
from lexveil.types import Floats, Ids

POLICY = Policy("perturb", "keep", "sample")
WORDS = ("fire", "new", "south", "wales", "police", "the", "water")
COLLOCATIONS = ("new_south_wales", "fire_police")
PLACES = np.array([[0, 0], [1, 0], [0, 2], [3, 1], [1.5, 1], [4, 4], [0.5, 0.25], [2, 2.5], [5, 0]], dtype=np.float32)


def tokens_of(strategy: str) -> list[str]:
    return [*WORDS, *(COLLOCATIONS if strategy != "S1" else ())]


@cache
def toy(mechanism: str, n: int = len(WORDS)) -> Mechanism:
    """A mechanism over the first n words."""
    orders = np.stack([np.arange(n), np.arange(n)[::-1] * 2 % n]) if MECHANISMS[mechanism].on_lists and n % 2 else None
    if MECHANISMS[mechanism].on_lists and orders is None:
        orders = np.arange(n)[None]
    return build_mechanism(mechanism, PLACES[:n], orders=orders)


def settings_of(mechanism: str, strategy: str = "S3", **more: Any) -> Settings:
    given = {"base_epsilon": None, "budget": 6.0, "seed": None, "policy": POLICY, "keep_layout": False} | more
    return Settings(mechanism, strategy, **given)


def measured(mechanism: str, strategy: str = "S3", n_columns: int = 1, **more: Any) -> Measurement:
    """The measurement of a run with a toy mechanism."""
    return measurement_of(settings_of(mechanism, strategy, **more), toy(mechanism), n_columns=n_columns)


def toy_engine(mechanism: str, strategy: str, **more: Any) -> Engine:
    """The engine itself, over the toy vocabulary."""
    tokens = tokens_of(strategy)
    collocations = Collocations.build(
        [["fire"], ["police"]], np.array([9.0]), [["new"], ["south"], ["wales"]], np.array([9.0])
    )
    lexicon = Lexicon.build(SEGMENTATION_OF[strategy], tokens, None if strategy == "S1" else collocations)
    settings = settings_of(mechanism, strategy, **more)
    vocabulary = Vocabulary.of(tokens, PLACES[: len(tokens)], settings.policy)
    prepared = Prepared(toy(mechanism, len(tokens)), vocabulary, {}, {})
    model = SimpleNamespace(
        lexicon=lambda _: lexicon,
        mechanism=lambda *_: prepared,
        structure=lambda *_: None,
        average_words=lambda: 3.0,
    )
    return Engine(settings, model)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """What of a text is not hidden: its disclosed structure. n tokens, those of all text columns one after the other.

    Attributes:
        action: (n,) ``Action`` of each token: its fate.
        epsilon: (n,) ε_i; 0 where nothing is spent on the token.
        leader: (n,) the token whose replacement each takes; itself where each has its own.
        column: (n,) the text column it stands in.
        kept: the words of kept tokens.
        layout: what is copied of the writer's layout; empty if nothing is.
        found: (n,) the type of each token that a detector found, else None; empty without detectors.
        forms: of found tokens that are redrawn in their form: that.
    """

    action: npt.NDArray[np.int8]
    epsilon: Floats
    leader: Ids
    column: Ids
    kept: tuple[str, ...]
    layout: tuple[str, ...]
    found: tuple[str | None, ...] = ()
    forms: tuple[str, ...] = ()

    def differences(self, other: Structure) -> list[str]:
        """In what two texts differ that neighbours share."""
        if len(self.action) != len(other.action):
            return ["the number of tokens"]
        same = {
            "the fate of a token": np.array_equal(self.action, other.action),
            "the ε_i": np.array_equal(self.epsilon, other.epsilon),
            "which tokens are repeated": np.array_equal(self.leader, other.leader),
            "the column of a token": np.array_equal(self.column, other.column),
            "a kept word": self.kept == other.kept,
            "the layout": self.layout == other.layout,
            "what was found": self.found == other.found,
            "the form of a number": self.forms == other.forms,
        }
        return [name for name, is_same in same.items() if not is_same]


def between(measurement: Measurement, first: Structure, second: Structure, distances: Floats) -> PrivacyBound:
    """The bound of two texts, whose structures are compared first.

    Args:
        distances: (n,) of the perturbed tokens, in text order.

    Raises:
        NoBound: if they are not neighbours, or as ``Measurement.bound``.
    """
    if differences := first.differences(second):
        raise NoBound(f"the texts are not neighbours: they differ in {', '.join(differences)}")
    epsilon = first.epsilon[first.action == Action.PERTURBED.value]
    if not _are_shares(measurement.shares, np.unique(epsilon[epsilon > 0])):
        raise NoBound("the ε_i of a text are not " + ("equal" if measurement.shares is None else "those of the shares"))
    return measurement.bound(distances, epsilon)


def _are_shares(shares: BudgetShares | None, epsilon: Floats) -> bool:
    """Whether different ε_i of one text are all of some part of the budget times the parts of a class."""
    if shares is None or not len(epsilon):
        return len(epsilon) <= 1
    parts = [Fraction(number) for number in shares.parts.tolist()]
    exact = [Fraction(value) for value in epsilon.tolist()]
    return any(all(value / (exact[-1] / most) in parts for value in exact) for most in parts)


def structures_of(
    engine: Engine, rows: Texts, budget: DocumentBudget, given: Sequence[GivenSpans] | None = None
) -> list[Structure]:
    """The disclosed structure of each document; ``given`` as of ``Batch``."""
    batch = Batch(rows, [()] * len(rows), given=given)
    encoded, plan = engine.worker().plan(batch)
    counts = count_planned(encoded, plan, batch.document, len(batch))
    document = batch.document[encoded.text_of]
    epsilon = np.where(plan.pays, allocate(engine.settings.strategy, budget, counts, engine.shares)[document], 0.0)
    epsilon *= 1 if plan.parts is None else plan.parts
    leader = np.arange(len(document)) if plan.leader is None else plan.leader
    layout = copied_layout(encoded, batch.texts) if engine.settings.keep_layout else [()] * len(batch.texts)
    structures = []
    for number in range(len(batch)):
        own = np.flatnonzero(document == number)
        kept = own[plan.action[own] == Action.KEPT.value]
        redrawn = own[plan.action[own] == Action.DIGITS.value].tolist()
        structures.append(
            Structure(
                plan.action[own],
                epsilon[own],
                leader[own] - (own[0] if len(own) else 0),
                batch.column[encoded.text_of[own]].astype(np.int64),
                tuple(encoded.words[first] for first in encoded.first_word[kept].tolist()),
                tuple(part for text in np.flatnonzero(batch.document == number) for part in layout[text]),
                () if encoded.found is None else tuple(encoded.found.names()[token] for token in own.tolist()),
                tuple(form_of(source_of(encoded, batch.texts, token)) for token in redrawn),
            )
        )
    return structures


def copied_layout(encoded: Encoded, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """What ``render_in_layout`` copies of each text: what stands between its tokens, and how each is capitalized."""
    bounds, copied = encoded.offsets().tolist(), []
    for text, tokens in zip(texts, map(range, bounds, bounds[1:]), strict=False):
        parts: list[str] = []
        end = 0
        for token in tokens:
            first = int(encoded.first_word[token])
            start, stop = encoded.spans[first].tolist()
            parts += [text[end:start], _capitals("ab", text[start:stop])]
            end = int(encoded.spans[first + int(encoded.n_words[token]) - 1, 1])
        copied.append((*parts, text[end:]))
    return copied
