"""Segmentation one sentence at a time, in Python: tidily with dictionaries, and as CLMLDP publishes it, with lists.

All take a sentence as strings and give the number of words of each token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

Gram = tuple[str, ...]
Scores = Mapping[Gram, float]
JoinedScores = Mapping[str, float]  # by the words joined with _


def tidy_gst(words: Sequence[str], bigrams: Scores, trigrams: Scores) -> list[int]:
    """Algorithm 1 by dictionary look-ups: words per token."""
    sizes = []
    i, n = 0, len(words)
    while i < n:
        size = 1
        if i + 2 < n and (words[i], words[i + 1], words[i + 2]) in trigrams:
            size = 3
        elif i + 1 < n and (words[i], words[i + 1]) in bigrams:
            size = 2
        sizes.append(size)
        i += size
    return sizes


def _candidates(words: Sequence[str], bigrams: Scores, trigrams: Scores) -> list[tuple[float, int, int]]:
    """(minus PMI, minus size, start): ascending order is that of Algorithm 2."""
    pairs = enumerate(map(bigrams.get, pairwise(words)))
    triples = enumerate(map(trigrams.get, zip(words, words[1:], words[2:], strict=False)))
    found = [(-pmi, -3, i) for i, pmi in triples if pmi is not None]
    found += [(-pmi, -2, i) for i, pmi in pairs if pmi is not None]
    return found


def tidy_mst(words: Sequence[str], bigrams: Scores, trigrams: Scores) -> list[int]:
    """Algorithm 2 by dictionary look-ups and one sort per sentence."""
    sizes = [1] * len(words)
    for _, minus_size, i in sorted(_candidates(words, bigrams, trigrams)):
        end = i - minus_size
        if sizes[i:end] == [1] * -minus_size:
            sizes[i:end] = [0] * -minus_size
            sizes[i] = -minus_size
    return [size for size in sizes if size]


def tidy_mst_exact(words: Sequence[str], bigrams: Scores, trigrams: Scores) -> list[int]:
    """The largest total PMI by dynamic programming from the right."""
    n = len(words)
    pmi = {(i, -minus_size): -minus_pmi for minus_pmi, minus_size, i in _candidates(words, bigrams, trigrams)}
    best, size_at = [0.0] * (n + 1), [1] * n
    for i in range(n - 1, -1, -1):
        best[i] = best[i + 1]
        for size in (2, 3):
            value = pmi.get((i, size))
            if value is not None and value + best[i + size] >= best[i]:
                best[i], size_at[i] = value + best[i + size], size
    sizes = []
    i = 0
    while i < n:
        sizes.append(size_at[i])
        i += size_at[i]
    return sizes


Place = tuple[str, int]  # a word, and which of its occurrences in the sentence
Found = tuple[str, tuple[Place, ...], float]  # a collocation as one string, its places, its PMI


def _places(words: Sequence[str]) -> list[Place]:
    seen: Counter[str] = Counter()
    places = []
    for word in words:
        seen[word] += 1
        places.append((word, seen[word]))
    return places


def _found(places: Sequence[Place], size: int, scores: JoinedScores) -> list[Found]:
    grams = [tuple(places[i : i + size]) for i in range(len(places) - size + 1)]
    joined = [("_".join(word for word, _ in gram), gram) for gram in grams]
    return [(text, gram, scores[text]) for text, gram in joined if text in scores]


def published_gst(words: Sequence[str], bigrams: JoinedScores, trigrams: JoinedScores) -> list[int]:
    """Algorithm 1 with lists of a sentence's candidates: searched for every word, shortened after every match.

    Its slip, to advance by three after a single word, is mended.
    """
    places = _places(words)
    pairs, triples = _found(places, 2, bigrams), _found(places, 3, trigrams)
    output = []
    matched: list[Place] = []
    for place in places:
        if place in matched:
            continue
        candidates = [candidate for candidate in triples if place in candidate[1]]
        if not candidates:
            candidates = [candidate for candidate in pairs if place in candidate[1]]
        if not candidates:
            output.append(1)
            matched.append(place)
            continue
        _, taken, _ = candidates[0]
        output.append(len(taken))
        matched += taken
        pairs = [candidate for candidate in pairs if not any(place in candidate[1] for place in taken)]
        triples = [candidate for candidate in triples if not any(place in candidate[1] for place in taken)]
    return output


def published_mst(words: Sequence[str], bigrams: JoinedScores, trigrams: JoinedScores) -> list[int]:
    """Algorithm 2 with one sorted list of all n-grams, and a list of what is matched; ties as in tidy_mst."""
    places = _places(words)
    order = {place: i for i, place in enumerate(places)}
    single: list[Found] = [(place[0], (place,), 0.0) for place in places]
    candidates = _found(places, 3, trigrams) + _found(places, 2, bigrams) + single
    matched: list[Place] = []
    output = []
    for _, gram, _ in sorted(candidates, key=lambda candidate: candidate[2], reverse=True):
        if all(place not in matched for place in gram):
            output.append((order[gram[0]], len(gram)))
            matched += gram
    return [size for _, size in sorted(output)]


TIDY = {"gst": tidy_gst, "mst": tidy_mst, "mst_exact": tidy_mst_exact}
PUBLISHED = {"gst": published_gst, "mst": published_mst}
