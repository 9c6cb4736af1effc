"""What a mechanism is, and the table of those there are. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lexveil.errors import ParameterError
from lexveil.mechanisms.diffractor import DiffractorGeometric, DiffractorTem
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.mechanisms.vickrey import Vickrey
from lexveil.types import Floats, Ids, Noise, Vectors


class Mechanism(Protocol):
    """Replaces token ids by token ids.

    The randomness of one document is drawn first (``noise``), from that document's own generator; the rest
    (``replace``) is deterministic and may be done for many documents at once, in any batches, with the same result.
    """

    @property
    def name(self) -> str:
        """Its name in the table below."""

    @property
    def metric(self) -> str:
        """What the guarantee's distance is."""

    @property
    def guarantee(self) -> str:
        """The proven statement, as a formula."""

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Noise:
        """Draw the noise of n tokens with per-token ``epsilon`` (n,), in 1 / units of the metric; one row per token."""

    def replace(self, ids: Ids, epsilon: Floats, noise: Noise) -> Ids:
        """Return the replacement of each of n ids, shape (n,); ``epsilon`` as given to ``noise``."""


class Kernel(Mechanism, Protocol):
    """A mechanism of this package, which can also say what it claims, and how far words are from each other."""

    @property
    def no_guarantee(self) -> str | None:
        """Why the statement does not hold as this one is configured; None where it does."""

    @property
    def size(self) -> int:
        """W, the number of words."""

    def distance(self, first: Ids, second: Ids) -> Floats:
        """The guarantee's distance of n pairs of ids, shape (n,)."""


@runtime_checkable
class ClosedForm(Protocol):
    """A mechanism whose law is known exactly."""

    def log_pmf(self, ids: Ids, epsilon: Floats) -> Floats:
        """Log probabilities ln Pr[M(w) = u] for each of n ids and every word u, shape (n, W)."""


# name -> class; ``metric`` and ``guarantee`` are known before one is built.
MECHANISMS: dict[str, Any] = {
    "madlib": Madlib,
    "mahalanobis": Mahalanobis,
    "vickrey": Vickrey,
    "tem": Tem,
    "truncated_gumbel": TruncatedGumbel,
    "diffractor_geometric": DiffractorGeometric,
    "diffractor_tem": DiffractorTem,
}
ON_LISTS = ("diffractor_geometric", "diffractor_tem")  # built over lists of the words instead of their vectors


def build_mechanism(
    name: str,
    vectors: Vectors,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    orders: Sequence[npt.NDArray[np.int32]] | npt.NDArray[np.int32] | None = None,
) -> Kernel:
    """Make mechanism ``name`` over a vocabulary.

    Args:
        vectors: (W, p) of the words.
        parameters: by mechanism, its parameters by name; what is missing has its default. ``rank_remap`` (enabled, c,
            ranks) applies to the mechanisms whose output is read off a noisy vector.
        orders: (n_lists, W), the lists of a mechanism that works on lists: ``orders[l][i]`` is the word at index i.

    Raises:
        ParameterError: if there is no such mechanism, a parameter is out of range, or the lists are missing.
    """
    if name not in MECHANISMS:
        raise ParameterError(f"there is no mechanism {name!r}; there are none, {', '.join(MECHANISMS)}")
    kind, given = MECHANISMS[name], parameters or {}
    if name in ON_LISTS:
        if orders is None:
            raise ParameterError(f"mechanism {name} works on lists of the words, and none was given")
        material: Any = orders
    else:
        material = vectors
    mechanism: Kernel = kind(material, **given.get(name, {}))
    remap = dict(given.get("rank_remap", {}))
    if remap.pop("enabled", False) and isinstance(mechanism, Madlib):
        return RankRemap(mechanism, **remap)
    return mechanism
