"""A mechanism as a package of somebody else has it, which claims more than anybody has proven."""

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.base import EuclideanMechanism


class Mine(EuclideanMechanism):
    """Replaces every word by a random one, and says that this is private."""

    name = "mine"

    def __init__(self, vectors: object) -> None:
        super().__init__(vectors)  # type: ignore[arg-type]
        self.no_guarantee = None

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """The claim."""
        return 0 * epsilon * distance

    @property
    def is_proven(self) -> bool:
        """The claim again."""
        return True

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """A number for each token."""
        return rng.random(len(epsilon))

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """The word of that number."""
        return (noise * self.size).astype(np.int64)


class Other(EuclideanMechanism):
    """A class that has another name than its entry point."""

    name = "another"
