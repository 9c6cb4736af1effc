"""How well a model in training fits its corpus: the mean negative-sampling loss over a fixed sample of examples.

gensim's own tally is not used. It adds every loss into one float32 (word2vec_inner.pyx), which no longer grows where a
loss is less than half its spacing: losses below 1 at 2^24, within the first epoch of a few million tokens. Of several
workers the last one's tally overwrites the others'. And pairs with a score beyond 6 are left out, those predicted worst
among them. Here the examples are drawn once, so epochs can be compared, and added up in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.types import Counts, Ids, Vectors

BLOCK = 1024  # examples at a time; bounds memory
NOISE_EXPONENT = 0.75  # Mikolov et al. 2013; gensim's default


@dataclass(frozen=True, slots=True)
class Probe:
    """n examples, each an input, the word to be predicted from it, and words drawn as noise.

    Attributes:
        inputs: (n, m) ids, -1 where there is none: one context word in skip-gram, all of them in CBOW, which averages.
        targets: (n,) ids of the words to be predicted.
        noise: (n, negative) ids, drawn in proportion to count^0.75; one that is the target does not count.
    """

    inputs: Ids
    targets: Ids
    noise: Ids

    def loss(self, vectors: Vectors, output_vectors: Vectors) -> float | None:
        """Mean of -log σ(h·u_target) - Σ log σ(-h·u_noise) in nats, h the mean of the inputs' vectors.

        Before training all output vectors are 0 and it is (1 + negative)·ln 2. None if there is no example.

        Args:
            vectors: (V, p), gensim's syn0.
            output_vectors: (V, p), gensim's syn1neg.
        """
        if not len(self.targets):
            return None
        total = 0.0
        for start in range(0, len(self.targets), BLOCK):
            inputs = self.inputs[start : start + BLOCK]
            is_context = inputs >= 0
            hidden = np.einsum(
                "nmp,nm->np", vectors[inputs].astype(np.float64), is_context / is_context.sum(1, keepdims=True)
            )
            words = np.column_stack([self.targets[start : start + BLOCK], self.noise[start : start + BLOCK]])
            score = np.einsum("nkp,np->nk", output_vectors[words].astype(np.float64), hidden)
            score[:, 0] *= -1
            loss = np.logaddexp(0.0, score)
            loss[:, 1:][words[:, 1:] == words[:, :1]] = 0.0
            total += float(loss.sum())
        return total / len(self.targets)


@dataclass(frozen=True, slots=True)
class ProbeShape:
    """Examples of a probe: how many at most, drawn evenly out of all, and gensim's parameters that shape them."""

    size: int
    window: int
    negative: int
    skip_gram: bool


def draw_probe(
    sentences: Sequence[Sequence[str]],
    row_of: Mapping[str, int],
    counts: Counts,
    keep: npt.NDArray[np.float64],
    *,
    shape: ProbeShape,
    rng: np.random.Generator,
) -> Probe:
    """Draw at most ``shape.size`` examples as gensim draws them: frequent words thinned out, windows of random width.

    Args:
        sentences: of the corpus, tokens each.
        row_of: id of each known token.
        counts: (V,) occurrences.
        keep: (V,) the chance that an occurrence is not thinned out.
    """
    inputs: list[list[int]] = []
    targets: list[int] = []
    for sentence in sentences:
        rows = np.array([row_of[token] for token in sentence if token in row_of], dtype=np.int64)
        rows = rows[rng.random(len(rows)) < keep[rows]]
        widths = rng.integers(1, shape.window + 1, size=len(rows))
        for position, width in enumerate(widths.tolist()):
            left, right = rows[max(0, position - width) : position], rows[position + 1 : position + 1 + width]
            context = np.concatenate([left, right]).tolist()
            for example in [[word] for word in context] if shape.skip_gram else [context] * bool(context):
                inputs.append(example)
                targets.append(int(rows[position]))
    chosen = np.unique(np.linspace(0, len(targets) - 1, min(shape.size, len(targets))).astype(np.int64))
    padded = np.full((len(chosen), 1 if shape.skip_gram else 2 * shape.window), -1, dtype=np.int64)
    for row, number in enumerate(chosen.tolist()):
        padded[row, : len(inputs[number])] = inputs[number]
    weight = np.cumsum(counts.astype(np.float64) ** NOISE_EXPONENT)
    noise = np.searchsorted(weight, rng.random((len(chosen), shape.negative)) * weight[-1], side="right")
    return Probe(padded, np.array(targets, dtype=np.int64)[chosen], np.minimum(noise, len(counts) - 1))
