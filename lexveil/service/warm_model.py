"""A model that keeps what it makes from one request to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.record import ModelReference
from lexveil.accounting.structure import StructureFigures
from lexveil.artifacts.mechanisms import Prepared
from lexveil.artifacts.model import Model

T = TypeVar("T")
MECHANISMS = 4  # kept at a time: each holds the vectors of its words


@dataclass(frozen=True, slots=True)
class WarmModel(Model):
    """A model for one thread that answers many requests.

    Mechanisms are kept as they are made, and so are the hashes of files: those of the time when
    they were first read. Nothing is kept that follows from a text: the time of an answer would tell
    one client what another has sent.
    """

    _mechanisms: OrderedDict[tuple[str, str, Policy], Prepared] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _kept: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def find(cls, name: str | None) -> WarmModel:
        """The model of this name at the place of the current folder; see ``Model.load``."""
        return cast(WarmModel, cls.load(None, name))

    def mechanism(self, name: str, strategy: str, policy: Policy) -> Prepared:
        """A mechanism, of which the last ``MECHANISMS`` are kept, without what follows from
        texts.
        """
        key = (name, SEGMENTATION_OF[strategy], policy)
        if key not in self._mechanisms:
            while len(self._mechanisms) >= MECHANISMS:
                self._mechanisms.popitem(last=False)
            self._mechanisms[key] = Model.mechanism(self, name, strategy, policy)
        self._mechanisms.move_to_end(key)
        return self._mechanisms[key].fresh()

    def forget_mechanisms(self) -> None:
        """Make them anew when they are asked for, with lists that were made since."""
        self._mechanisms.clear()

    def hashes(self, strategy: str) -> dict[str, str]:
        """The hashes of files, computed once."""
        return dict(
            self._once(("hashes", SEGMENTATION_OF[strategy]), lambda: Model.hashes(self, strategy))
        )

    def reference(self, strategy: str) -> ModelReference:
        """What a record says of it, computed once."""
        return self._once(
            ("reference", SEGMENTATION_OF[strategy]), lambda: Model.reference(self, strategy)
        )

    def structure(self, strategy: str, policy: Policy) -> StructureFigures | None:
        """What was measured of public texts, read once."""
        return self._once(
            ("structure", strategy, policy), lambda: Model.structure(self, strategy, policy)
        )

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])
