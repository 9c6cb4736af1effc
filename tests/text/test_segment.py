"""GST, MST and the exact maximum, against implementations a reader can check against the paper."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.base.errors import RequestError
from lexveil.core.text.collocation_index import MAX_WORDS, Collocations
from lexveil.core.text.segment import segment

KINDS = ("gst", "mst", "mst_exact")


def collocations(table):
    """An index of a table's pairs and triples."""
    columns = []
    for size in (2, 3):
        grams = [gram for gram in table if len(gram) == size]
        columns += (
            [[gram[i] for gram in grams] for i in range(size)],
            np.array([table[gram] for gram in grams], float),
        )
    return Collocations.build(*columns)


def sizes(kind, batch, table):
    """Words per token of a batch, by the code under test."""
    known = collocations(table)
    offsets = np.cumsum([0, *map(len, batch)])
    lengths = segment(
        kind,
        *known.scores(known.ids([word for words in batch for word in words]), offsets),
        offsets,
    )
    return lengths[lengths > 0].tolist()


def cut(kind, sentence, table):
    """A sentence with its collocations joined by the code under test."""
    words = iter(sentence.split())
    return " ".join(
        "_".join(islice(words, size)) for size in sizes(kind, [sentence.split()], table)
    )


def grams(words, table):
    """(start, size, PMI) of every collocation in a sentence."""
    for i in range(len(words)):
        for size in (2, 3):
            gram = tuple(words[i : i + size])
            if len(gram) == size and gram in table:
                yield i, size, table[gram]


def reference_gst(words, table):
    """CLMLDP Algorithm 1: words per token."""
    found = {(i, size) for i, size, _ in grams(words, table)}
    tokens = []
    i = 0
    while i < len(words):
        tokens.append(next((size for size in (3, 2) if (i, size) in found), 1))
        i += tokens[-1]
    return tokens


def reference_mst(words, table):
    """CLMLDP Algorithm 2; ties: longer first, then leftmost."""
    token_at = dict.fromkeys(range(len(words)), 1)
    taken = set()
    for i, size, _ in sorted(grams(words, table), key=lambda gram: (-gram[2], -gram[1], gram[0])):
        places = range(i, i + size)
        if taken.isdisjoint(places):
            taken.update(places)
            for place in places:
                del token_at[place]
            token_at[i] = size
    return [token_at[i] for i in sorted(token_at)]


def reference_mst_exact(words, table):
    """The best way to cut what stands from each position on; of equally good ones the longer
    token."""
    pmi = {(i, size): value for i, size, value in grams(words, table)}
    best = [0.0] * (len(words) + 1)
    size_at = [1] * len(words)
    for i in reversed(range(len(words))):
        totals = [(best[i + 1], 1)] + [
            (pmi[i, n] + best[i + n], n) for n in (2, 3) if (i, n) in pmi
        ]
        best[i], size_at[i] = max(totals)
    tokens = []
    while (i := sum(tokens)) < len(words):
        tokens.append(size_at[i])
    return tokens


REFERENCES = {"gst": reference_gst, "mst": reference_mst, "mst_exact": reference_mst_exact}


WORDS = st.sampled_from("abcd")
SENTENCES = st.lists(st.lists(WORDS, max_size=9), max_size=4)
# Few values, so that ties happen; 0.1 + 0.2 > 0.3 in float64, so that the order of a sum shows.
PMI = st.sampled_from([2.0, 2.5, 3.0, 4.0, 4.5, 7.0, 0.1, 0.2, 0.3, 0.6])
TABLES = st.dictionaries(st.tuples(WORDS, WORDS) | st.tuples(WORDS, WORDS, WORDS), PMI, max_size=20)


# Two words and nearly every collocation of them: one run of candidates as long as the sentence.
DENSE_WORDS = st.sampled_from("ab")
DENSE_GRAMS = st.tuples(DENSE_WORDS, DENSE_WORDS) | st.tuples(DENSE_WORDS, DENSE_WORDS, DENSE_WORDS)
DENSE_TABLES = st.dictionaries(DENSE_GRAMS, PMI, min_size=6)
BATCHES = st.tuples(SENTENCES, TABLES) | st.tuples(
    st.lists(st.lists(DENSE_WORDS, min_size=1, max_size=90), min_size=1, max_size=3), DENSE_TABLES
)


@pytest.mark.parametrize("kind", KINDS)
@given(BATCHES, st.data())
def test_the_reference_is_met_in_any_batches(kind, sentences_and_table, data):
    batch, table = sentences_and_table
    expected = [size for words in batch for size in REFERENCES[kind](words, table)]
    assert sizes(kind, batch, table) == expected
    middle = data.draw(st.integers(0, len(batch)))
    assert sizes(kind, batch[:middle], table) + sizes(kind, batch[middle:], table) == expected


THREE = {("a", "b"): 3.0, ("b", "c"): 4.0, ("c", "d"): 3.0}
LONGER = {("a", "b"): 3.0, ("b", "c", "d"): 3.0}
FIGURE_1 = {("i", "think"): 4.53, ("therefore", "i"): 3.0, ("i", "am"): 7.9}


@pytest.mark.parametrize(
    ("table", "kind", "expected"),
    [
        ({("a", "b"): 3.0, ("b", "c"): 3.0}, "mst", "a_b c"),  # leftmost
        (LONGER, "mst", "a b_c_d"),  # longer before leftmost
        (LONGER, "mst_exact", "a_b c d"),  # the longer token at its place
        ({("a", "b"): 3.0, ("a", "b", "c"): 3.0}, "mst_exact", "a_b_c"),
        (THREE, "mst", "a b_c d"),  # greedy can miss the maximum
        (THREE, "mst_exact", "a_b c_d"),
        # a trigram needs no bigram
        *(({("a", "b", "c"): 9.0}, kind, "a_b_c a b") for kind in KINDS),
        (FIGURE_1, "gst", "i_think , therefore_i am"),  # the paper's
        (FIGURE_1, "mst", "i_think , therefore i_am"),
    ],
)
def test_sentences_by_hand(table, kind, expected):
    assert cut(kind, expected.replace("_", " "), table) == expected


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_scores_of_plain_ids(dtype):
    """Every score is the table's, in a numbering with gaps, among ids that take part in nothing."""
    rng = np.random.default_rng(7)
    pairs = rng.integers(0, 400, (20_000, 2)) * 37
    triples = rng.integers(0, 40, (9_000, 3)) * 37
    pmi = rng.normal(4, 1, len(pairs)), rng.normal(8, 1, len(triples))
    known = Collocations.for_ids(
        [*pairs.T.astype(dtype)], pmi[0], [*triples.T.astype(dtype)], pmi[1]
    )
    table = {}
    for gram, value in zip(
        [*pairs.tolist(), *triples.tolist()], np.concatenate(pmi).tolist(), strict=True
    ):
        table.setdefault(tuple(gram), value)  # of one listed twice the first counts
    ids = np.where(
        rng.random(50_000) < 0.9, rng.integers(0, 60, 50_000) * 37, rng.integers(-1, 20_000, 50_000)
    )
    offsets = np.unique(np.concatenate([[0, len(ids)], rng.integers(0, len(ids), 3_000)]))
    ends = np.repeat(offsets[1:], np.diff(offsets)).tolist()
    listed = ids.tolist()
    for found, size in zip(known.scores(ids.astype(dtype), offsets), (2, 3), strict=True):
        sliced = [tuple(listed[i : min(i + size, end)]) for i, end in enumerate(ends)]
        assert found.tolist() == [
            table.get(gram, -math.inf) if len(gram) == size else -math.inf for gram in sliced
        ]
        assert np.isfinite(found).sum() > 1_000
    assert known.ids(["a"]).tolist() == [-1]  # no words were given


def test_refusals():
    many = np.arange(MAX_WORDS + 1)
    one = np.array([1])
    none = [np.zeros(0, np.int64)] * 3
    with pytest.raises(RequestError, match=r"2,097,153 different words.*min_count"):
        Collocations.for_ids([many, many], np.full(len(many), 3.0), none, np.zeros(0))
    with pytest.raises(ValueError, match="finite"):
        Collocations.for_ids([one, one], np.array([np.nan]), none, np.zeros(0))
    known = Collocations.for_ids([one, one], np.array([3.0]), none, np.zeros(0))
    for offsets in ([0, 2], [1, 3], [0, 2, 1, 3]):
        with pytest.raises(ValueError, match="sentence offsets"):
            known.scores(np.array([1, 1, 1]), np.array(offsets))
