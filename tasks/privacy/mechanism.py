"""What a mechanism is, and the table of those there are. A new one is one file and one line here."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tasks.errors import ParameterError
from tasks.privacy.madlib import Madlib
from tasks.space.word_space import Vectors

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Mechanism(Protocol):
    """Replaces token ids by token ids.

    The randomness of one document is drawn first (``noise``), from that document's own generator; the rest
    (``replace``) is deterministic and may be done for many documents at once, in any batches, with the same result.
    """

    name: ClassVar[str]
    metric: ClassVar[str]  # what the guarantee's distance is
    guarantee: ClassVar[str]  # the proven statement, as a formula

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw the noise of n tokens with per-token ``epsilon`` (n,), in 1 / units of the metric; one row per token."""

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """Return the replacement of each of n ids, shape (n,); ``epsilon`` as given to ``noise``."""


MECHANISMS = {"madlib": Madlib}


def build_mechanism(name: str, vectors: Vectors) -> Mechanism:
    """Make mechanism ``name`` over a vocabulary of vectors (V, p).

    Raises:
        ParameterError: if there is no such mechanism.
    """
    if name not in MECHANISMS:
        raise ParameterError(f"there is no mechanism {name!r}; there are none, {', '.join(MECHANISMS)}")
    return MECHANISMS[name](vectors)
