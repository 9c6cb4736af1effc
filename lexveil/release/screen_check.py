"""How much of what texts say is in the parts of the screen, none of whose words comes out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from lexveil.base.logs import logger
from lexveil.core.accounting.budgets import Action
from lexveil.io.artifacts.screened_words import is_screened, screened_words
from lexveil.io.formats.chunks import Chunk
from lexveil.release.engine.batch import batch_of
from lexveil.release.engine.counts import BatchCounts
from lexveil.release.engine.engine import Engine, WordEngine
from lexveil.release.engine.worker import BatchWorker

LOG = logger(__name__)

LOOKED_AT = 50_000  # tokens, from the first on
# share of the replaced words in one part of the screen above which the part costs what texts say
MUCH_SCREENED = 0.05


class ScreenCheck:
    """Looks at the first tokens of an input: which words would be replaced, and how many of them
    are of each chosen part of the screen.

    It looks at nothing where sentences are written, which are not words of the texts, and where
    detectors look for tokens, which would look twice.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine if isinstance(engine, WordEngine) else None
        if engine.settings.detection is not None or not engine.settings.screen:
            self.engine = None
        self.n_tokens = 0
        self.replaced = Counter[int]()  # by the number of the word in the vocabulary

    def add(self, chunk: Chunk, counted: BatchCounts, worker: BatchWorker) -> None:
        """Look at the next chunk."""
        if self.engine is None or self.n_tokens >= LOOKED_AT:
            return
        n_tokens = counted.counts[1]
        before = self.n_tokens + np.cumsum(n_tokens) - n_tokens
        _, plan = worker.plan(batch_of(replace(chunk, selection=before < LOOKED_AT)))
        words = plan.known[plan.action == Action.PERTURBED.value]
        numbers, counts = np.unique(words, return_counts=True)
        self.replaced.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        self.n_tokens += int(n_tokens.sum())

    def shares(self) -> dict[str, float]:
        """Return the share of the replaced words that are of each part; empty where nothing was
        looked at.
        """
        if self.engine is None or not self.replaced:
            return {}
        rows = self.engine.vocabulary.rows[list(self.replaced)].tolist()
        tokens = [self.engine.lexicon.tokens[row] for row in rows]
        counts = np.array(list(self.replaced.values()))
        return {
            part: float(counts[is_screened(tokens, screened_words((part,)))].sum() / counts.sum())
            for part in self.engine.settings.screen
        }

    def tell(self) -> None:
        """Tell the operator of the parts whose words make up much of what is replaced."""
        if self.engine is None or self.engine.model.suppress_language_warning:
            return
        for caution in cautions(self.shares()):
            LOG.warning(f"private to the operator: {caution}")


def cautions(shares: dict[str, float]) -> list[str]:
    """Return a caution for each part of the screen that takes much of what texts say."""
    found = list[str]()
    for part, share in shares.items():
        if share > MUCH_SCREENED:
            others = ",".join(other for other in shares if other != part) or "none"
            found.append(
                f"CAUTION: {share:.1%} of the replaced words are of part {part} of the screen, and "
                "none of these comes out: the texts lose most of what they say of it. To let its "
                f"words out, say screen {others}"
            )
    return found
