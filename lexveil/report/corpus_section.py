"""Corpus, n-grams, vocabularies, and the tokens that are shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lexveil.report import formatting
from lexveil.report.table import Column, Table

SEGMENTATIONS = ("word", "gst", "mst")
LENGTHS = ("unigram", "bigram", "trigram")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A near token, and how far it is in embedding units."""

    token: str
    distance: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One token, its number of words, how often it occurs, and its nearest tokens, nearest first."""

    token: str
    n_words: int
    count: int
    neighbours: Sequence[Neighbour]


def coverage_table(coverage: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """How much of each data set each vocabulary knows."""
    rows = [
        (dataset, segmentation, *(one[name] for name in ("n_texts", "n_words", "n_covered", "n_oov", "coverage")))
        for dataset, by_segmentation in sorted(coverage.items())
        for segmentation, one in sorted(by_segmentation.items(), key=lambda item: SEGMENTATIONS.index(item[0]))
    ]
    return Table(
        "coverage",
        "Words of each data set that the vocabulary knows",
        [
            Column("dataset", "Data set"),
            Column("segmentation", "Segmentation"),
            Column("n_texts", "Texts", formatting.count),
            Column("n_words", "Words", formatting.count),
            Column("n_covered", "Known", formatting.count),
            Column("n_oov", "Unknown", formatting.count),
            Column("coverage", "Coverage", formatting.share),
        ],
        rows,
        "Words inside a collocation are counted one by one; punctuation is not. Unknown words have no vector: they are "
        "treated by policy.oov of params.yaml. A larger corpus knows more.",
    )


def corpus_table(totals: Mapping[str, int], n_bigrams: int, n_trigrams: int) -> Table:
    """The corpus in numbers."""
    per_sentence = totals["n_tokens"] / totals["n_sentences"] if totals["n_sentences"] else None

    def part(n: int, of: int) -> float | None:
        return n / of if of else None

    rows = [
        ("Documents in the sample", totals["n_documents"], None),
        ("Sentences", totals["n_sentences"], None),
        ("Words and punctuation marks (N of PMI)", totals["n_tokens"], None),
        ("Words and punctuation marks per sentence", per_sentence, None),
        ("Distinct words", totals["n_words"], None),
        ("Distinct bigrams counted", totals["n_bigrams"], None),
        ("Bigrams kept as collocations", n_bigrams, part(n_bigrams, totals["n_bigrams"])),
        ("Distinct trigrams counted", totals["n_trigrams"], None),
        ("Trigrams kept as collocations", n_trigrams, part(n_trigrams, totals["n_trigrams"])),
    ]
    columns = [
        Column("what", "What"),
        Column("number", "Number", formatting.amount),
        Column("share", "Of those counted", formatting.share),
    ]
    return Table("corpus", "What was read and counted", columns, rows)


def segmentation_table(
    segmented: Mapping[str, Mapping[str, Any]],
    spaces: Mapping[str, Mapping[str, Any]],
    dimensions: Mapping[str, int],
    nearest: Mapping[str, float],
) -> Table:
    """What each segmentation makes of the corpus, and the vocabulary its embedding learnt.

    Args:
        segmented, spaces: metrics by segmentation.
        dimensions: p, by segmentation.
        nearest: median distance of a token to its nearest neighbour, by segmentation.
    """
    rows = []
    for name in SEGMENTATIONS:
        cut, space = segmented[name], spaces[name]
        n_tokens = cut["n_tokens"]
        rows.append(
            (
                name,
                n_tokens,
                cut["n_words"] / n_tokens if n_tokens else None,
                space["n_tokens"],
                *(space[f"n_{length}s"] for length in LENGTHS),
                space["tokens_covered"] / n_tokens if n_tokens else None,
                dimensions[name],
                space["norm_median"],
                nearest[name],
            )
        )
    return Table(
        "segmentations",
        "Segmentations of the corpus and their vocabularies",
        [
            Column("segmentation", "Segmentation"),
            Column("n_tokens", "Tokens", formatting.count, "Corpus"),
            Column("words_per_token", "Words / token", formatting.three, "Corpus"),
            Column("vocabulary", "Tokens", formatting.count, "Vocabulary"),
            *(Column(f"n_{length}s", f"{length.capitalize()}s", formatting.count, "Vocabulary") for length in LENGTHS),
            Column("corpus_share", "Share of the corpus", formatting.share, "Vocabulary"),
            Column("dimensions", "Dimensions", formatting.count, "Embedding"),
            Column("norm_median", "Median length", formatting.three, "Embedding"),
            Column("nearest_median", "Median distance to nearest", formatting.three, "Embedding"),
        ],
        rows,
        "word: every word alone. gst: left to right, the longest collocation first. mst: the collocation of highest "
        "PMI first. Lengths and distances are in embedding units.",
    )


def length_shares(segmented: Mapping[str, Mapping[str, Any]]) -> dict[str, list[float]]:
    """Share of a segmentation's tokens that have 1, 2 and 3 words."""
    return {
        name: [segmented[name][f"n_{length}_tokens"] / max(segmented[name]["n_tokens"], 1) for length in LENGTHS]
        for name in SEGMENTATIONS
    }


def collocation_table(name: str, caption: str, rows: Sequence[tuple[str, int, float]]) -> Table:
    """Collocations with their counts and PMI; ``rows`` are (words joined by a space, count, bits)."""
    return Table(
        name,
        caption,
        [
            Column("collocation", "Collocation"),
            Column("count", "Count", formatting.count),
            Column("pmi_bits", "PMI (bits)", formatting.two),
        ],
        rows,
    )


def choose(
    tokens: Sequence[str], n_words: int, stop_words: Set[str], ranks: Sequence[int], limit: int = 200_000
) -> list[int]:
    """Choose tokens to show: the ones at ``ranks`` among those of ``n_words`` words, counted from the most frequent.

    Tokens with a stop word, or with a part that has no letter, are passed over. Where there are too few, the last one
    is taken instead.

    Args:
        tokens: by falling frequency; a token joins its words by ``_``.
        ranks: rising, from 1.
        limit: how many tokens are looked at, at most.

    Returns:
        Rows, at most one per rank, without repeats.
    """
    found: list[int] = []
    for row, token in enumerate(tokens[:limit]):
        words = token.split("_")
        if len(words) != n_words or any(word in stop_words or not any(map(str.isalpha, word)) for word in words):
            continue
        found.append(row)
        if len(found) == ranks[-1]:
            break
    return list(dict.fromkeys(found[min(rank, len(found)) - 1] for rank in ranks)) if found else []
