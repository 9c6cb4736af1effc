"""Intrinsic evaluation of an embedding: neighbours, human similarity judgements, analogies, and
how far training moved each vector.

``train_embeddings`` writes the results to artifacts/metrics/embeddings/SEGMENTATION.json under
"quality"; docs/reference/embeddings.md lists the keys. Similarity is always cosine, so the length
of vectors does not affect neighbours, judgements and analogies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lexveil.base.types import Floats, Vectors
from lexveil.core.embeddings.word_space import WordSpace, unit_vectors

Question = tuple[str, str, str, str]

NEIGHBOURS = 5
# Ranks of the sampled tokens by frequency, as a share of the tokens with as many words.
PLACES: Mapping[str, tuple[float, ...]] = {
    "frequent": (0.005, 0.01, 0.02),
    "medium": (0.2, 0.3, 0.4),
    "rare": (0.8, 0.9, 0.99),
}
LENGTHS = ("unigram", "bigram", "trigram")
# least count of each band; 0 for an external model, which has no counts
BANDS = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)
# in lengths of the random start: a vector that moved less is mostly random
HARDLY = 1.0
# number of most frequent tokens among which answers are searched, as in word2vec's compute-accuracy
ANALOGY_WORDS = 30_000
WORDS_AT_A_TIME = 256
# additional candidates, so that float32 rounding does not decide which tokens are nearest
SLACK = 4


def neighbour_samples(space: WordSpace) -> dict[str, dict[str, list[dict[str, object]]]]:
    """Return the nearest neighbours of a sample of tokens: three frequent, three medium and three
    rare tokens for each number of words in a token.

    Tokens without a letter are left out.
    """
    unit = unit_vectors(space.vectors)
    lettered = [any(sign.isalpha() for sign in token) for token in space.tokens]
    n_words = space.n_words
    samples: dict[str, dict[str, list[dict[str, object]]]] = {}
    for number, length in enumerate(LENGTHS, 1):
        rows = np.flatnonzero((n_words == number) & lettered)
        samples[length] = {}
        for name, places in PLACES.items():
            chosen = (
                sorted({int(rows[int(place * len(rows))]) for place in places}) if len(rows) else []
            )
            samples[length][name] = [_neighbours(space, unit, row) for row in chosen]
    return samples


def nearest(space: WordSpace, tokens: Sequence[str]) -> list[dict[str, object]]:
    """Return the nearest neighbours of each of ``tokens``; a token that the space lacks is left
    out.
    """
    unit = unit_vectors(space.vectors)
    row_of = {token: row for row, token in enumerate(space.tokens)}
    return [_neighbours(space, unit, row_of[token]) for token in tokens if token in row_of]


def _neighbours(space: WordSpace, unit: Vectors, row: int) -> dict[str, object]:
    score = unit @ unit[row]
    score[row] = -np.inf
    wanted = min(NEIGHBOURS, len(score) - 1)
    near = np.argpartition(-score, min(wanted + SLACK, len(score) - 1))[: wanted + SLACK]
    near = np.sort(near[near != row])
    cosine = unit[near].astype(np.float64) @ unit[row].astype(np.float64)
    order = np.argsort(-cosine, kind="stable")[:wanted]
    return {
        "token": space.tokens[row],
        "count": int(space.counts[row]),
        "norm": _round(np.linalg.norm(space.vectors[row])),
        "neighbours": [
            {"token": space.tokens[near[i]], "cosine": _round(cosine[i])} for i in order.tolist()
        ],
    }


def similarity(space: WordSpace, pairs: Sequence[tuple[str, str, float]]) -> dict[str, object]:
    """Compute the rank correlation (Spearman) between cosine similarities and human judgements,
    over the pairs in which both words are known.

    Args:
        pairs: first word, second word, judgement; words in the tokenizer's normal form.

    Returns:
        pairs, pairs_known, and spearman, which is None with fewer than three pairs.
    """
    row_of = {token: row for row, token in enumerate(space.tokens)}
    known = [
        (row_of[a], row_of[b], judged) for a, b, judged in pairs if a in row_of and b in row_of
    ]
    spearman = None
    if len(known) > 2:
        from scipy.stats import rankdata

        left, right, judged = zip(*known, strict=True)
        first, second = (
            unit_vectors(space.vectors[list(rows)]).astype(np.float64) for rows in (left, right)
        )
        ranks = rankdata(np.stack([np.einsum("np,np->n", first, second), judged]), axis=1)
        ranks -= ranks.mean(axis=1, keepdims=True)
        spread = float(np.sqrt((ranks**2).sum(axis=1).prod()))
        spearman = _round(ranks[0] @ ranks[1] / spread) if spread > 0 else None
    return {"pairs": len(pairs), "pairs_known": len(known), "spearman": spearman}


def analogies(space: WordSpace, sections: Mapping[str, Sequence[Question]]) -> dict[str, object]:
    """Count the analogy questions "a is to b as c is to ?" that the space answers correctly
    (3CosAdd, Mikolov et al. 2013).

    The answer is the token, other than a, b and c, whose vector is nearest in cosine to b - a + c
    (all at length 1), among the ``ANALOGY_WORDS`` most frequent tokens. A question that contains
    any other word is left out.

    Returns:
        questions, questions_known, correct, accuracy (share of questions_known; None if there are
        none), and the same four values by section.
    """
    unit = unit_vectors(space.vectors[:ANALOGY_WORDS])
    row_of = {token: row for row, token in enumerate(space.tokens[:ANALOGY_WORDS])}
    by_section: dict[str, dict[str, Any]] = {}
    for name, questions in sections.items():
        known = np.array(
            [
                [row_of[word] for word in question]
                for question in questions
                if all(word in row_of for word in question)
            ],
            dtype=np.int64,
        ).reshape(-1, 4)
        correct = 0
        for start in range(0, len(known), WORDS_AT_A_TIME):
            a, b, c, answer = known[start : start + WORDS_AT_A_TIME].T
            score = (unit[b] - unit[a] + unit[c]) @ unit.T
            for question_word in (a, b, c):
                score[np.arange(len(score)), question_word] = -np.inf
            correct += int((score.argmax(axis=1) == answer).sum())
        by_section[name] = _answered(len(questions), len(known), correct)
    totals = [
        sum(one[key] for one in by_section.values())
        for key in ("questions", "questions_known", "correct")
    ]
    return {**_answered(*totals), "by_section": by_section}


def _answered(questions: int, known: int, correct: int) -> dict[str, object]:
    accuracy = round(correct / known, 4) if known else None
    return {
        "questions": questions,
        "questions_known": known,
        "correct": correct,
        "accuracy": accuracy,
    }


def by_frequency(space: WordSpace, displacement: Floats | None) -> dict[str, object]:
    """Return the lengths of the vectors by frequency band, and the share of vectors that training
    hardly moved.

    Args:
        displacement: (V,) distance of each vector from its random start, in lengths of that start;
            NaN for a vector without a random start. None for a model whose random start is unknown.

    Returns:
        hardly_moved: share of the vectors with a random start that moved less than ``HARDLY``; None
        if there are none; bands: the bands that contain a token, each with least_count, n_tokens,
        tokens_covered, norm_q10, norm_median, norm_q90, norm_largest, hardly_moved.
    """
    norms = np.linalg.norm(space.vectors, axis=1)
    moved = np.full(len(norms), np.nan) if displacement is None else displacement
    band = np.searchsorted(BANDS, space.counts, side="right") - 1
    bands = []
    for number in np.unique(band).tolist():
        here = band == number
        low, middle, high = np.quantile(norms[here], [0.1, 0.5, 0.9])
        bands.append(
            {
                "least_count": BANDS[number],
                "n_tokens": int(here.sum()),
                "tokens_covered": int(space.counts[here].sum()),
                "norm_q10": _round(low),
                "norm_median": _round(middle),
                "norm_q90": _round(high),
                "norm_largest": _round(norms[here].max()),
                "hardly_moved": _hardly(moved[here]),
            }
        )
    return {"hardly_moved": _hardly(moved), "bands": bands}


def _hardly(moved: Floats) -> float | None:
    random = moved[~np.isnan(moved)]
    return _round((random < HARDLY).mean()) if len(random) else None


def _round(value: Any) -> float:
    # Four decimals are enough for figures that people compare.
    return round(float(value), 4)
