"""A model for the service that caches mechanisms and file hashes across requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.record import ModelReference
from lexveil.core.accounting.structure import StructureFigures
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.artifacts.model import Model

T = TypeVar("T")
MECHANISMS = 4  # number of cached mechanisms, each of which holds the vectors of its words


@dataclass(frozen=True, slots=True)
class WarmModel(Model):
    """A model that caches its results, for one thread that answers many requests.

    The model caches mechanisms, sentence banks, and the hashes of files at the time when they were
    first read. It caches nothing that depends on a text, because the time of an answer would
    disclose to one client what another client has sent.
    """

    _mechanisms: OrderedDict[tuple[str, str, Policy], Prepared] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _kept: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def find(cls, name: str | None) -> WarmModel:
        """Load the model of this name, from the project in the current folder if there is one; see
        ``Model.load``.
        """
        return cast(WarmModel, cls.load(None, name))

    def mechanism(self, name: str, strategy: str, policy: Policy) -> Prepared:
        """Return a mechanism without state from texts. The ``MECHANISMS`` most recent mechanisms
        are cached.
        """
        key = (name, SEGMENTATION_OF[strategy], policy)
        if key not in self._mechanisms:
            while len(self._mechanisms) >= MECHANISMS:
                self._mechanisms.popitem(last=False)
            self._mechanisms[key] = Model.mechanism(self, name, strategy, policy)
        self._mechanisms.move_to_end(key)
        return self._mechanisms[key].fresh()

    def forget_mechanisms(self) -> None:
        """Clear the cache of mechanisms, so that later requests use neighbour lists that were
        computed since.
        """
        self._mechanisms.clear()

    def hashes(self, strategy: str) -> dict[str, str]:
        """Return the SHA-256 of each model file, computed once."""
        return dict(
            self.once(("hashes", SEGMENTATION_OF[strategy]), lambda: Model.hashes(self, strategy))
        )

    def reference(self, strategy: str) -> ModelReference:
        """Return the reference to this model (such as its name and hash) for privacy records,
        computed once.
        """
        return self.once(
            ("reference", SEGMENTATION_OF[strategy]), lambda: Model.reference(self, strategy)
        )

    def structure(self, strategy: str, policy: Policy) -> StructureFigures | None:
        """Return figures on how often a text keeps its disclosed structure (such as its number of
        tokens) when a word is replaced, measured on public texts, or None if the model has none.
        The file is read once.
        """
        return self.once(
            ("structure", strategy, policy), lambda: Model.structure(self, strategy, policy)
        )

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the cached result of ``make`` for a key and for the purposes of this model. The
        first call computes the result.
        """
        named = (self.name, *key)
        if named not in self._kept:
            self._kept[named] = make()
        return cast(T, self._kept[named])
