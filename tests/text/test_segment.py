"""GST, MST and the exact maximum, against implementations a reader can check against the paper."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.segment import Collocations, join_tokens, segment

Table = dict[tuple[str, ...], float]


def collocations(table: Table) -> Collocations:
    pairs = [key for key in table if len(key) == 2]
    triples = [key for key in table if len(key) == 3]
    return Collocations.build(
        [[key[i] for key in pairs] for i in range(2)],
        np.array([table[key] for key in pairs]),
        [[key[i] for key in triples] for i in range(3)],
        np.array([table[key] for key in triples]),
    )


def cut(kind: str, batch: list[list[str]], table: Table) -> list[list[str]]:
    """Segment a batch of sentences with the code under test."""
    words = [word for sentence in batch for word in sentence]
    sentence = np.repeat(np.arange(len(batch)), [len(tokens) for tokens in batch])
    known = collocations(table)
    lengths = segment(kind, *known.scores(known.ids(words), sentence), sentence)
    lines = join_tokens(words, lengths, sentence).split("\n")[:-1]
    return [line.split(" ") for line in lines]


def reference_gst(words: list[str], table: Table) -> list[str]:
    """CLMLDP Algorithm 1."""
    tokens, i = [], 0
    while i < len(words):
        size = next((n for n in (3, 2) if i + n <= len(words) and tuple(words[i : i + n]) in table), 1)
        tokens.append("_".join(words[i : i + size]))
        i += size
    return tokens


def reference_mst(words: list[str], table: Table) -> list[str]:
    """CLMLDP Algorithm 2; ties: longer first, then leftmost."""
    candidates = [
        (-table[gram], -n, i)
        for n in (2, 3)
        for i in range(len(words) - n + 1)
        if (gram := tuple(words[i : i + n])) in table
    ]
    taken: dict[int, int] = {}
    for _, minus_n, i in sorted(candidates):
        if not any(j in taken for j in range(i, i - minus_n)):
            taken.update(dict.fromkeys(range(i, i - minus_n), i))
    groups = itertools.groupby(range(len(words)), key=lambda j: taken.get(j, -1 - j))
    return ["_".join(words[j] for j in group) for _, group in groups]


def score(tokens: list[str], table: Table) -> float:
    return sum(table[key] for token in tokens if len(key := tuple(token.split("_"))) > 1)


def best_score(words: list[str], table: Table) -> float:
    """The largest total over every way to cut the sentence."""
    if not words:
        return 0.0
    options = [best_score(words[1:], table)]
    options += [
        table[gram] + best_score(words[n:], table)
        for n in (2, 3)
        if (gram := tuple(words[:n])) in table and len(gram) == n
    ]
    return max(options)


WORDS = st.sampled_from("abcd")
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=9), min_size=1, max_size=4)
TABLES = st.dictionaries(
    st.tuples(WORDS, WORDS) | st.tuples(WORDS, WORDS, WORDS),
    st.sampled_from([2.0, 2.5, 3.0, 4.0, 4.5, 7.0]),  # few values, so that ties happen
    max_size=20,
)


@given(SENTENCES, TABLES)
def test_gst_is_the_papers(batch: list[list[str]], table: Table) -> None:
    assert cut("gst", batch, table) == [reference_gst(words, table) for words in batch]


@given(SENTENCES, TABLES)
def test_mst_is_the_papers(batch: list[list[str]], table: Table) -> None:
    assert cut("mst", batch, table) == [reference_mst(words, table) for words in batch]


@given(SENTENCES, TABLES)
def test_mst_exact_is_the_maximum(batch: list[list[str]], table: Table) -> None:
    for words, exact, mst, gst in zip(
        batch, *(cut(kind, batch, table) for kind in ("mst_exact", "mst", "gst")), strict=True
    ):
        assert score(exact, table) == pytest.approx(best_score(words, table))
        assert score(exact, table) >= max(score(mst, table), score(gst, table)) - 1e-9


@given(SENTENCES, TABLES, st.sampled_from(["word", "gst", "mst", "mst_exact"]))
def test_every_position_is_covered_once(batch: list[list[str]], table: Table, kind: str) -> None:
    for words, tokens in zip(batch, cut(kind, batch, table), strict=True):
        assert [word for token in tokens for word in token.split("_")] == words
        assert len(tokens) <= len(words)


def test_greedy_can_miss_the_maximum() -> None:
    """b c scores highest alone and blocks both its neighbours: what mst_exact is for."""
    table = {("a", "b"): 3.0, ("b", "c"): 4.0, ("c", "d"): 3.0}
    assert cut("mst", [["a", "b", "c", "d"]], table) == [["a", "b_c", "d"]]
    assert cut("mst_exact", [["a", "b", "c", "d"]], table) == [["a_b", "c_d"]]


def test_figure_1_of_the_paper() -> None:
    sentence = ["i", "think", ",", "therefore", "i", "am"]
    table = {("i", "think"): 4.53, ("therefore", "i"): 3.0, ("i", "am"): 7.9}
    assert cut("gst", [sentence], table) == [["i_think", ",", "therefore_i", "am"]]
    assert cut("mst", [sentence], table) == [["i_think", ",", "therefore", "i_am"]]


def test_nothing_crosses_a_sentence() -> None:
    table = {("a", "b"): 5.0, ("a", "b", "c"): 9.0}
    for kind in ("gst", "mst", "mst_exact"):
        assert cut(kind, [["a"], ["b", "c"]], table) == [["a"], ["b", "c"]]
