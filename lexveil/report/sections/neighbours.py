"""Some tokens of every embedding with their nearest neighbours, in the form of CLMLDP Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import load_words
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.section import Section
from lexveil.runtime.tables import require
from lexveil.text.function_words import STOP_WORDS

RANKS = (5, 15, 25)  # of the tokens shown with their neighbours: frequent ones, and not only the most frequent
NEIGHBOURS = 5


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


def read_samples(segmentation: str) -> list[Sample]:
    """Some frequent tokens of every length with their nearest neighbours."""
    tokens = load_words(segmentation)
    file = require(paths.embedding(segmentation) / "counts.npy", f"train_embeddings@{segmentation}")
    counts = np.load(file, mmap_mode="r", allow_pickle=False)
    ids, distances = ReportData.distances(segmentation)
    return [
        Sample(
            tokens[row],
            n_words,
            int(counts[row]),
            [
                Neighbour(tokens[near], float(distance))
                for near, distance in zip(ids[row, :NEIGHBOURS], distances[row, :NEIGHBOURS], strict=True)
            ],
        )
        for n_words in (1, 2, 3)
        for row in choose(tokens, n_words, STOP_WORDS, RANKS)
    ]


def view(_: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    return {
        "ranks": formatting.listed([f"{rank}th" for rank in RANKS]),
        "neighbours": [(segmentation, read_samples(segmentation)) for segmentation in ("gst", "mst", "word")],
    }


SECTION = Section(
    name="neighbours",
    title="Neighbours",
    heading="Sample tokens and their neighbours",
    view=view,
    prose="""\
{% macro neighbour_table(segmentation, samples) %}
<figure class="table">
<figcaption id="neighbours-{{ segmentation }}-caption">{{ segmentation }}: tokens and their {{ samples|map(attribute="neighbours")|map("length")|max }} nearest neighbours</figcaption>
<div class="scroll" tabindex="0" role="region" aria-labelledby="neighbours-{{ segmentation }}-caption">
<table class="neighbours{{ ' few' if samples|length < 6 }}" id="table-neighbours-{{ segmentation }}" aria-labelledby="neighbours-{{ segmentation }}-caption">
<thead><tr><td></td>{% for one in samples %}<th scope="col"><span class="token">{{ one.token|breakable }}</span><small>{{ one.n_words }} {{ "word" if one.n_words == 1 else "words" }}, {{ one.count|count }}×</small></th>{% endfor %}</tr></thead>
<tbody>
{% for place in range(samples|map(attribute="neighbours")|map("length")|max) %}
<tr><th scope="row">{{ place + 1 }}</th>{% for one in samples %}<td>{% if place < one.neighbours|length %}<span class="token">{{ one.neighbours[place].token|breakable }}</span><small>{{ one.neighbours[place].distance|three }}</small>{% endif %}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
</figure>
{% endmacro %}
<p>In the form of the paper's Table 7: of each length the {{ ranks }} most frequent tokens, stop words and tokens without
letters not counted, with their nearest neighbours in the embedding and the Euclidean distance to each. A neighbour need not
have the same length. Read them as a check of the embedding: where it learnt enough, neighbours are alike.</p>
{% for segmentation, samples in neighbours if samples %}{{ neighbour_table(segmentation, samples) }}{% endfor %}
""",
)
