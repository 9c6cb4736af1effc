"""Rewrites the batches of a run, in any process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lexveil.detectors.detection import Detection
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.privatization.engine.found import write_found
from lexveil.privatization.engine.plan import Plan
from lexveil.privatization.engine.rewrite import Components, Rewritten, rewrite
from lexveil.text.encode import Encoded
from lexveil.text.render import NOTHING
from lexveil.types import Floats, Ids


@dataclass(frozen=True, slots=True, repr=False)
class TextBatch:
    """Texts to rewrite together.

    Attributes:
        epsilon: (n,) for each part of the budget that a perturbed token of the text gets, from its plan.
        keys: (n,) what names the text in the run; its stream is named by it.
        document: (n,) the document of each; only where a detector looks for something.
    """

    texts: Sequence[str]
    epsilon: Floats
    keys: Sequence[tuple[str, ...]]
    document: Ids | None = None


@dataclass(frozen=True, slots=True)
class Rewriter(Components):
    """Everything that rewriting takes beside the texts. It holds no generator, so no two processes can share one.

    Attributes:
        names: of the run; with a text's key they name its stream.
        seed: of an experiment, in which batches and processes change no result; None in release mode.
        detection: what detectors find, and what is to happen to it; None without any.
    """

    names: tuple[str, ...]
    seed: int | None
    detection: Detection | None = None

    def named(self, budget_name: str) -> Rewriter:
        """The same for another budget: the last of its names."""
        return replace(self, names=(*self.names[:-1], budget_name))

    def __call__(self, batch: TextBatch, planned: tuple[Encoded, Plan] | None = None) -> Rewritten:
        """Rewrite a batch. In release mode it has a generator of its own, keyed here and now by the system.

        Args:
            planned: the texts' tokens and what is to happen to each, where that was worked out before.
        """
        seed, written = self.seed, NOTHING
        if self.detection is not None and planned is not None and batch.document is not None:
            written = write_found(*planned, batch.texts, self.detection, batch.document, self._for_found(batch))
        if seed is None:
            return rewrite(batch.texts, batch.epsilon, self, release_generator(), planned, written)

        def generator(i: int) -> np.random.Generator:
            return stream(seed, *self.names, *batch.keys[i])

        return rewrite(batch.texts, batch.epsilon, self, generator, planned, written)

    def _for_found(self, batch: TextBatch) -> Callable[[int], np.random.Generator]:
        """The generator of what is written in the place of found tokens of a text, which is no other token's."""
        seed = self.seed
        if seed is None:
            generator = release_generator()
            return lambda _: generator
        return lambda i: stream(seed, *self.names, *batch.keys[i], "found")
