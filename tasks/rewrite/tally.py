"""The numbers of a run, added up batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.privacy.budget import ACTIONS, DROPPED, KEPT, PERTURBED, SAMPLED
from tasks.rewrite.rewrite import Rewritten, count_actions
from tasks.space.word_space import Vectors
from tasks.text.encode import KINDS


class Tally:
    """Counts, and how near the replacements are.

    ``mean_cosine`` is the mean cosine of source and output vector over the tokens that were perturbed and changed.
    """

    def __init__(self, vectors: Vectors | None) -> None:
        self.vectors = vectors
        self.actions = np.zeros((len(KINDS), len(ACTIONS)), dtype=np.int64)
        self.n_documents = self.n_texts = self.n_words_in = self.n_words_out = self.n_changed = 0
        self.epsilon = self.cosine = 0.0

    def add(self, done: Rewritten, n_documents: int) -> None:
        """Count one batch."""
        self.n_documents += n_documents
        self.n_texts += done.encoded.n_texts
        self.actions += count_actions(done.encoded.kind, done.action)
        self.n_words_in += int(done.encoded.n_words.sum())
        self.n_words_out += int(done.out_words.sum())
        self.epsilon += float(done.epsilon.sum())
        if self.vectors is not None:
            changed = (done.action == PERTURBED) & (done.rows != done.encoded.rows)
            before = self.vectors[done.encoded.rows[changed]].astype(np.float64)
            after = self.vectors[done.rows[changed]].astype(np.float64)
            lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
            dot = np.einsum("np,np->n", before, after)
            self.n_changed += int(changed.sum())
            self.cosine += float(np.divide(dot, lengths, out=np.zeros(len(dot)), where=lengths > 0).sum())

    def metrics(self) -> dict[str, Any]:
        """All numbers as JSON values; null where there is nothing to divide by."""
        by_action = self.actions.sum(axis=0)
        n, perturbed = int(by_action.sum()), int(by_action[PERTURBED])

        def share(part: float, whole: float) -> float | None:
            # Rounded, so that the order of additions shows in no digit that is kept.
            return round(part / whole, 9) if whole else None

        return {
            "n_documents": self.n_documents,
            "n_texts": self.n_texts,
            "n_tokens_in": n,
            "n_tokens_out": n - int(by_action[DROPPED]),
            "n_words_in": self.n_words_in,
            "n_words_out": self.n_words_out,
            "n_perturbed": perturbed,
            "n_kept": int(by_action[KEPT]),
            "n_dropped": int(by_action[DROPPED]),
            "n_sampled": int(by_action[SAMPLED]),
            "by_class": {
                kind: dict(zip(ACTIONS, row, strict=True))
                for kind, row in zip(KINDS, self.actions.tolist(), strict=True)
            },
            "share_unchanged": share(perturbed - self.n_changed, perturbed) if self.vectors is not None else None,
            "mean_cosine": share(self.cosine, self.n_changed),
            "unprotected_share": share(int(by_action[KEPT]), n) or 0.0,
            "epsilon_spent_mean": share(self.epsilon, self.n_texts),
        }
