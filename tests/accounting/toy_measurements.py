"""Small mechanisms and a small vocabulary, with what is proven of them."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.measurements import Measurement
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.mechanisms import Prepared
from lexveil.mechanisms.registry import MECHANISMS, Kernel, build_mechanism
from lexveil.privatization.engine.engine import Engine, measurement_of
from lexveil.privatization.settings import Settings
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Lexicon

POLICY = Policy("perturb", "keep", "sample")
WORDS = ("fire", "new", "south", "wales", "police", "the", "water")
COLLOCATIONS = ("new_south_wales", "fire_police")
PLACES = np.array([[0, 0], [1, 0], [0, 2], [3, 1], [1.5, 1], [4, 4], [0.5, 0.25], [2, 2.5], [5, 0]], dtype=np.float32)


def tokens_of(strategy: str) -> list[str]:
    return [*WORDS, *(COLLOCATIONS if strategy != "S1" else ())]


@cache
def toy(mechanism: str, n: int = len(WORDS)) -> Kernel:
    """A mechanism over the first n words."""
    orders = np.stack([np.arange(n), np.arange(n)[::-1] * 2 % n]) if MECHANISMS[mechanism].on_lists and n % 2 else None
    if MECHANISMS[mechanism].on_lists and orders is None:
        orders = np.arange(n)[None]
    return build_mechanism(mechanism, PLACES[:n], orders=orders)


def settings_of(mechanism: str, strategy: str = "S3", **more: Any) -> Settings:
    given = {"epsilon": None, "budget": 6.0, "seed": None, "policy": POLICY, "keep_layout": False} | more
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
