"""The trained adversary: a small network that reorders the likeliest words of the exact channel.

The source of a replaced word is one of its k candidates w, the likeliest words by the channel and
the public frequencies. The adversary gives each candidate w a probability in proportion to

    Pr[M(w)=y] · exp(odds(w)),  odds(w) = Σ a·φ(w) + ⟨c(w), h⟩

φ(w) are features of the candidate (``FIGURES``); c(w) is a trained vector that starts as the vector
of the embedding. The weights a of the features and the vector h are computed by one hidden layer
from the context of the word: for each of ``REACH`` tokens on either side, the word if it was kept,
otherwise the output word and the mean vector of the candidates that the n-gram adversary expects
there; and the mean of these means over the text. The distances of a candidate to the outputs around
it thus enter as inner products, and training decides their weights. If all weights are 0, the odds
are 0, and the order of the candidates is the order of the channel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lexveil.base.types import Ids

Reals = NDArray[np.floating[Any]]  # float32, except in tests of the gradient

REACH = 8  # number of tokens on either side
OFFSETS = np.array([*range(-REACH, 0), *range(1, REACH + 1)])
FIGURES = ("channel", "frequency", "context", "repeated", "unchanged")
CONTEXT = FIGURES.index("context")
WIDTH = 64  # width of the vector of a surrounding token, and of a candidate
HIDDEN = 256
KEPT = 1_024  # number of kept words with a vector of their own
LEAST = -60.0  # nats: a feature this far below the largest of its word is clipped
RUN = 64  # words of a text that are trained together, because each is context of the others
BATCH = 1_024
EPOCHS = 2
RATE = 1e-3  # step size at the start
SLOW = 0.3  # factor on the step size for the vectors of candidates: each word has its own
MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
TINY = 1e-9


class Evidence(NamedTuple):
    """The evidence about n replaced words, with k candidates each.

    Attributes:
        ids: (n, k) candidates; -1 if there are fewer than k.
        channel: (n, k) ln Pr[M(w)=y], shifted so that the largest of each word is 0; -inf without a
            candidate.
        context: (n, k) ln Pr[w | all else] by the n-gram model, shifted so that the largest is 0.
        repeated: (n, k) expected number of occurrences of the candidate elsewhere in the text.
        kept: (n, 2 REACH) number of the kept word at each offset plus 1, else 0.
        around: (n, 2 REACH) which of the n words was replaced at each offset, else -1.
        outputs: (n,) output words.
        means: (n, p) mean vector of the candidates according to the n-gram adversary.
        topic: (n, p) mean of ``means`` over the other words of the text.
        text_of: (n,) the text of each word, ascending.
    """

    ids: Ids
    channel: Reals
    context: Reals
    repeated: Reals
    kept: Ids
    around: Ids
    outputs: Ids
    means: Reals
    topic: Reals
    text_of: Ids

    @classmethod
    def joined(cls, parts: list[Evidence]) -> Evidence:
        """Concatenate the evidence of several batches of texts."""
        words = np.cumsum([0, *(len(part.ids) for part in parts)])
        texts = np.cumsum([0, *(int(part.text_of.max(initial=-1)) + 1 for part in parts)])
        moved = [
            part._replace(
                around=np.where(part.around < 0, -1, part.around + first),
                text_of=part.text_of + text,
            )
            for part, first, text in zip(parts, words[:-1], texts[:-1], strict=True)
        ]
        return cls(*(np.concatenate(each) for each in zip(*moved, strict=True)))


class Words(NamedTuple):
    """Public knowledge about W words.

    Attributes:
        vectors: (W, p) vectors of length 1.
        log_prior: (W,) logarithm of the public frequency, shifted to mean 0.
    """

    vectors: Reals
    log_prior: Reals


class Weights(NamedTuple):
    """The weights of the trained adversary.

    Attributes:
        kept: (KEPT + 1, WIDTH) vectors of kept words.
        drawn: (2p, WIDTH) map from the output and the mean vector of a replaced word.
        hidden, hidden_bias: weights and bias of the hidden layer.
        out, out_bias: (HIDDEN, WIDTH), (WIDTH,) map to the vector with which candidates are
            compared.
        figures, figures_bias: (HIDDEN, F), (F,) map to the weights of the features.
        words: (W, WIDTH) vectors of candidates.
    """

    kept: Reals
    drawn: Reals
    hidden: Reals
    hidden_bias: Reals
    out: Reals
    out_bias: Reals
    figures: Reals
    figures_bias: Reals
    words: Reals

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(each.size for each in self)

    @classmethod
    def shaped(cls, words: Words) -> Weights:
        """Return weights that are all 0."""
        n, p = words.vectors.shape
        seen = len(OFFSETS) * WIDTH + p + 2
        shapes: tuple[tuple[int, ...], ...] = (
            (KEPT + 1, WIDTH),
            (2 * p, WIDTH),
            (seen, HIDDEN),
            (HIDDEN,),
            (HIDDEN, WIDTH),
            (WIDTH,),
            (HIDDEN, len(FIGURES)),
            (len(FIGURES),),
            (n, WIDTH),
        )
        return cls(*(np.zeros(shape, np.float32) for shape in shapes))

    @classmethod
    def begun(cls, words: Words, rng: np.random.Generator) -> Weights:
        """Return the weights before training: the features have the weights of the n-gram
        adversary, and the vectors of candidates are those of the embedding in its ``WIDTH`` main
        directions.
        """
        begun = cls.shaped(words)
        begun.kept[1:] = rng.normal(0, 0.1, begun.kept[1:].shape)
        for each in (begun.drawn, begun.hidden):
            each[:] = rng.normal(0, 1 / math.sqrt(len(each)), each.shape)
        begun.figures_bias[CONTEXT] = 1
        centred = words.vectors - words.vectors.mean(axis=0)
        directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :WIDTH]
        begun.words[:, : directions.shape[1]] = centred @ directions
        return begun


class _Seen(NamedTuple):
    """The results of the layers for b words, kept for the backward pass."""

    pairs: Reals
    place: Ids
    kept: Ids
    inputs: Reals
    layer: Reals
    figures: Reals
    candidates: Reals
    compared: Reals
    odds: Reals


def log_odds(evidence: Evidence, rows: Ids, words: Words, weights: Weights) -> Reals:
    """Return the log odds of the candidates of some words, (b, k)."""
    return _forward(evidence, rows, words, weights).odds


def scores(evidence: Evidence, rows: Ids, words: Words, weights: Weights) -> Reals:
    """Return the sum of the log odds and ln Pr[M(w)=y], (b, k)."""
    total: Reals = evidence.channel[rows] + log_odds(evidence, rows, words, weights)
    return total


def guesses(evidence: Evidence, words: Words, weights: Weights) -> Ids:
    """Return the candidate with the largest score for each of n words, (n,)."""
    found = np.empty(len(evidence.ids), dtype=np.int64)
    for start in range(0, len(found), BATCH):
        rows = np.arange(start, min(start + BATCH, len(found)))
        best = scores(evidence, rows, words, weights).argmax(axis=1)
        found[rows] = evidence.ids[rows, best]
    return found


def loss(evidence: Evidence, rows: Ids, true: Ids, words: Words, weights: Weights) -> float:
    """Return the mean cross-entropy in nats of b true words, each among its candidates."""
    chance = _chances(scores(evidence, rows, words, weights))
    of_true = np.where(evidence.ids[rows] == true[rows, None], chance, 0).sum(axis=1)
    return float(-np.log(of_true).mean())


def gradient(evidence: Evidence, rows: Ids, true: Ids, words: Words, weights: Weights) -> Weights:
    """Return the gradient of the loss of b true words."""
    seen = _forward(evidence, rows, words, weights)
    chance = _chances(evidence.channel[rows] + seen.odds)
    slope = (chance - (evidence.ids[rows] == true[rows, None])) / len(rows)
    return _backward(evidence, rows, seen, weights, slope.astype(seen.odds.dtype))


def trained(
    evidence: Evidence,
    true: Ids,
    words: Words,
    weights: Weights,
    rng: np.random.Generator,
    *,
    epochs: int = EPOCHS,
) -> Weights:
    """Train weights on words with known sources, and return them. Words whose source is not among
    their candidates are not used. The step size falls to 0.

    Args:
        true: (n,) the source words.
        weights: the weights to start from.
    """
    rows = np.flatnonzero((evidence.ids == true[:, None]).any(axis=1))
    batches = [batch for _ in range(epochs) for batch in _batches(rows, rng)]
    weights = Weights(*(each.copy() for each in weights))
    steps = _Adam(weights)
    for number, batch in enumerate(batches):
        slopes = gradient(evidence, batch, true, words, weights)
        steps.go(weights, slopes, RATE * (1 - number / len(batches)))
    return weights


def _batches(rows: Ids, rng: np.random.Generator) -> Iterator[Ids]:
    """Yield batches of rows in random order; neighbouring rows, which are context of each other,
    stay together.
    """
    runs = [rows[start : start + RUN] for start in range(0, len(rows), RUN)]
    order = rng.permutation(len(runs)).tolist()
    n_runs = BATCH // RUN
    for start in range(0, len(runs), n_runs):
        yield np.concatenate([runs[run] for run in order[start : start + n_runs]])


def _chances(scores: Reals) -> Reals:
    chance: Reals = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    return chance


def _figures(evidence: Evidence, rows: Ids, words: Words, kind: np.dtype[Any]) -> Reals:
    """Return the features of the candidates of b words, (b, k, F)."""
    ids = evidence.ids[rows]
    channel = np.maximum(evidence.channel[rows], LEAST)
    context = np.maximum(evidence.context[rows], LEAST)
    repeated = np.log(0.05 + evidence.repeated[rows])
    unchanged = ids == evidence.outputs[rows, None]
    figures: Reals = np.stack(
        [channel, words.log_prior[ids], context, repeated, unchanged], axis=2
    ).astype(kind)
    return figures


def _forward(evidence: Evidence, rows: Ids, words: Words, weights: Weights) -> _Seen:
    around = evidence.around[rows]
    kept = evidence.kept[rows]
    kind = weights.hidden.dtype
    replaced, place = np.unique(around, return_inverse=True)
    place = place.reshape(around.shape)
    known = [words.vectors[evidence.outputs[replaced]], evidence.means[replaced]]
    pairs = np.hstack(known).astype(kind)
    pairs[replaced < 0] = 0
    slots = (pairs @ weights.drawn)[place] + weights.kept[kept]
    chance = _chances(evidence.channel[rows])
    spread = -(chance * np.log(np.maximum(chance, TINY))).sum(axis=1)
    parts = [slots.reshape(len(rows), -1), evidence.topic[rows]]
    inputs = np.column_stack([*parts, spread, chance.max(axis=1)]).astype(kind)
    layer = np.maximum(inputs @ weights.hidden + weights.hidden_bias, 0)
    figures = _figures(evidence, rows, words, kind)
    candidates = weights.words[evidence.ids[rows]]
    compared = layer @ weights.out + weights.out_bias
    weighed = layer @ weights.figures + weights.figures_bias
    odds = (candidates @ compared[:, :, None] + figures @ weighed[:, :, None])[:, :, 0]
    return _Seen(pairs, place, kept, inputs, layer, figures, candidates, compared, odds)


def _backward(
    evidence: Evidence, rows: Ids, seen: _Seen, weights: Weights, slope: Reals
) -> Weights:
    """Return the gradient with respect to all weights; ``slope`` (b, k) is the gradient with
    respect to the log odds.
    """
    by_compared = (slope[:, None] @ seen.candidates)[:, 0]
    by_weighed = (slope[:, None] @ seen.figures)[:, 0]
    by_layer = by_compared @ weights.out.T + by_weighed @ weights.figures.T
    by_layer *= seen.layer > 0
    by_slots = (by_layer @ weights.hidden[: len(OFFSETS) * WIDTH].T).reshape(-1, WIDTH)
    by_pairs = _summed(seen.place.ravel(), by_slots, len(seen.pairs))
    n_rows, k = slope.shape
    # Places without a candidate (-1) have slope 0.
    ids = evidence.ids[rows].ravel() % len(weights.words)
    starts = np.arange(n_rows + 1) * k
    chosen = csr_array((slope.ravel(), ids, starts), shape=(n_rows, len(weights.words)))
    return Weights(
        kept=_summed(seen.kept.ravel(), by_slots, len(weights.kept)),
        drawn=seen.pairs.T @ by_pairs,
        hidden=seen.inputs.T @ by_layer,
        hidden_bias=by_layer.sum(axis=0),
        out=seen.layer.T @ by_compared,
        out_bias=by_compared.sum(axis=0),
        figures=seen.layer.T @ by_weighed,
        figures_bias=by_weighed.sum(axis=0),
        words=chosen.T @ seen.compared,
    )


def _summed(places: Ids, values: Reals, n: int) -> Reals:
    """Return the sums of rows by place, (n, width)."""
    ones = np.ones(len(places), values.dtype)
    starts = np.arange(len(places) + 1)
    sums: Reals = csr_array((ones, places, starts), shape=(len(places), n)).T @ values
    return sums


class _Adam:
    """Optimizer Adam: steps by the mean gradient divided by the root of its mean square (Kingma &
    Ba 2015).
    """

    def __init__(self, weights: Weights) -> None:
        self.n = 0
        self.means = [np.zeros_like(each) for each in weights]
        self.squares = [np.zeros_like(each) for each in weights]

    def go(self, weights: Weights, gradient: Weights, rate: float) -> None:
        """Change the weights in place."""
        self.n += 1
        step = rate * math.sqrt(1 - SQUARE_DECAY**self.n) / (1 - MEAN_DECAY**self.n)
        for number, (name, slope) in enumerate(gradient._asdict().items()):
            self.means[number] += (1 - MEAN_DECAY) * (slope - self.means[number])
            self.squares[number] += (1 - SQUARE_DECAY) * (slope * slope - self.squares[number])
            direction = self.means[number] / (np.sqrt(self.squares[number]) + TINY)
            weights[number][:] -= step * (SLOW if name == "words" else 1) * direction
