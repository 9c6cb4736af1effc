"""The mechanisms there are: the modules of this package that are not shared, and those of other
packages that are installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from lexveil.embeddings.neighborhoods import NearTable
from lexveil.errors import ParameterError
from lexveil.mechanisms import mechanism_names, own_names
from lexveil.mechanisms.base import REGISTERED, ClosedForm, Mechanism, PublicCounts
from lexveil.mechanisms.installed import entries, load
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.types import Orders, Vectors

__all__ = ["MECHANISMS", "ON_LISTS", "ClosedForm", "Mechanism", "build_mechanism"]


class _Mechanisms(dict[str, Any]):
    """The classes by name; one that could not be loaded says why when it is asked for."""

    def __missing__(self, name: str) -> Any:
        if name in entries() and name not in own_names():
            return load(name, Mechanism)
        raise KeyError(name)


def _found() -> _Mechanisms:
    """Return all mechanisms in the order of their names, those of this package first. A mechanism
    of another package that cannot be loaded is left out.
    """
    classes = _Mechanisms()
    for name in mechanism_names():
        if name in own_names():
            importlib.import_module(f"lexveil.mechanisms.{name}")
            classes[name] = REGISTERED[name]
            continue
        with suppress(ParameterError):
            classes[name] = load(name, Mechanism)
    return classes


# name -> class; what a class states of itself is known before one is built
MECHANISMS: dict[str, Any] = _found()
ON_LISTS = tuple(name for name, mechanism in MECHANISMS.items() if mechanism.on_lists)


def build_mechanism(
    name: str,
    vectors: Vectors,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    orders: Sequence[Orders] | Orders | None = None,
    near: NearTable | None = None,
    public: PublicCounts | None = None,
) -> Mechanism:
    """Build mechanism ``name`` over a vocabulary.

    Args:
        vectors: (W, p) vectors of the words.
        parameters: by mechanism, its parameters by name; missing ones have their defaults.
            ``rank_remap`` (enabled, c, ranks) applies to the mechanisms whose output is read off a
            noisy vector.
        orders: (n_lists, W), the word orders of a mechanism on lists: ``orders[l][i]`` is the word
            at index i.
        near: precomputed lists of near words; a mechanism or a remapping that needs more computes
            them.
        public: public counts of the words; None if each token is one word and nothing is known of
            the words after it.

    Raises:
        ParameterError: if there is no such mechanism, a parameter is out of range, or the word
            orders are missing.
    """
    if name not in MECHANISMS and name not in entries():
        raise ParameterError(
            f"there is no mechanism {name!r}; there are none, {', '.join(MECHANISMS)}"
        )
    mechanism_class = MECHANISMS[name]
    given = parameters or {}
    if mechanism_class.on_lists and orders is None:
        raise ParameterError(f"mechanism {name} works on lists of the words, and none was given")
    material = orders if mechanism_class.on_lists else vectors
    known: dict[str, object] = {"near": near} if mechanism_class.on_neighbors else {}
    if public is not None and mechanism_class.weighs_length:
        known["n_words"] = public.n_words
    if public is not None and mechanism_class.in_context:
        known |= {"counts": public.counts, "bigrams": public.bigrams, "causal": public.causal}
    mechanism: Mechanism = mechanism_class(material, **known, **given.get(name, {}))
    remap = dict(given.get("rank_remap", {}))
    if remap.pop("enabled", False) and isinstance(mechanism, Madlib) and mechanism.rank_remap:
        return RankRemap(mechanism, near, **remap)
    return mechanism
