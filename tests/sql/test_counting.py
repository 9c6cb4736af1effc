"""Counting and PMI: by hand, against a brute-force Counter, and by what must always hold."""

import math
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexveil.base.errors import RequestError
from lexveil.core.association import MEASURES
from lexveil.core.text.languages.english import CONNECTORS
from lexveil.core.text.normal_forms import has_letters
from lexveil.io.config import CollocationParams, MachineParams
from lexveil.io.execution import duckdb_session
from lexveil.lab.collocations import counting
from lexveil.lab.collocations.counting import count
from lexveil.lab.collocations.sampling import TOKENS, kind_of
from lexveil.lab.collocations.scoring import build

pytestmark = pytest.mark.slow


ALL = [measure.name for measure in MEASURES]


def machine(folder, **limits):
    return MachineParams(
        **{
            "memory_limit": "1GB",
            "threads": 2,
            "workers": 1,
            "temp_directory": str(folder / "w"),
            **limits,
        }
    )


def write_tokens(lines, folder, rows=1000):
    """Sentences as the corpus stage writes them, in row groups of ``rows`` sentences."""
    counts = Counter(word for line in lines for word in line)
    words = sorted(counts, key=lambda word: (kind_of(word, CONNECTORS), -counts[word], word))
    ids = {word: number for number, word in enumerate(words)}
    kinds = [("punctuation", "connector", "word")[kind_of(word, CONNECTORS)] for word in words]
    vocabulary = {
        "word": pa.array(words, pa.string()),
        "count": pa.array([counts[word] for word in words], pa.int64()),
    }
    table = {
        "word_id": pa.array(range(len(words)), pa.int32()),
        **vocabulary,
        "kind": pa.array(kinds, pa.string()),
    }
    pq.write_table(pa.table(table), folder / "words.parquet")
    sentences = [
        ["d"] * len(lines),
        list(range(len(lines))),
        [[ids[word] for word in line] for line in lines],
    ]
    pq.write_table(pa.table(sentences, TOKENS), folder / "tokens.parquet", row_group_size=rows)
    return folder / "tokens.parquet", folder / "words.parquet"


def counted(lines, folder, min_count=1, rows=1000):
    """Counts by n-gram of words, from the files that the stage writes."""
    totals = count(
        *write_tokens(lines, folder, rows), folder / "ngrams", min_count, machine(folder)
    )
    words = pq.read_table(folder / "ngrams" / "words.parquet").to_pydict()
    assert words["word_id"] == list(range(len(words["word"])))
    found = {(word,): n for word, n in zip(words["word"], words["count"], strict=True)}
    for name in ("bigrams", "trigrams"):
        table = pq.read_table(folder / "ngrams" / f"{name}.parquet").to_pydict()
        *ids, counts = table.values()
        found |= {
            tuple(words["word"][i] for i in key): n for *key, n in zip(*ids, counts, strict=True)
        }
    return found, totals


def brute_force(lines, min_count=1):
    """Count every n-gram of up to three words inside each sentence; a word without letters, or a
    connector, ends it."""
    grams = Counter(
        tuple(line[i : i + n])
        for line in lines
        for n in (1, 2, 3)
        for i in range(len(line) - n + 1)
    )
    return {
        gram: n
        for gram, n in grams.items()
        if len(gram) == 1
        or (n >= min_count and all(has_letters(word) and word not in CONNECTORS for word in gram))
    }


def measured(folder, n_tokens=10, **params):
    """The collocations by their words, as the stage writes them."""
    options = CollocationParams(**{"min_count": 1, "min_pmi": -100.0, **params})
    build(folder / "ngrams", n_tokens, folder / "collocations", options, machine(folder))
    found = {}
    for name, n in (("bigrams", 2), ("trigrams", 3)):
        rows = pq.read_table(folder / "collocations" / f"{name}.parquet").to_pylist()
        found |= {tuple(list(row.values())[:n]): dict(list(row.items())[n:]) for row in rows}
    return found


BY_HAND = ["new york is big".split(), "new york is old".split()]


def test_ngrams_by_hand(tmp_path):
    """An n-gram lies within one sentence."""
    grams, _ = counted(BY_HAND, tmp_path)
    words = {("new",): 2, ("york",): 2, ("is",): 2, ("big",): 1, ("old",): 1}
    pairs = {("new", "york"): 2, ("york", "is"): 2, ("is", "big"): 1, ("is", "old"): 1}
    triples = {("new", "york", "is"): 2, ("york", "is", "big"): 1, ("york", "is", "old"): 1}
    assert grams == words | pairs | triples


def test_totals_by_hand(tmp_path):
    _, totals = counted(BY_HAND, tmp_path)
    assert totals == {
        "n_documents": 1,
        "n_sentences": 2,
        "n_tokens": 8,
        "bigram_tokens": 6,
        "trigram_tokens": 4,
        "n_bigrams": 4,
        "n_trigrams": 3,
        "n_words": 5,
    }


def test_collocations_by_hand(tmp_path):
    """N = 8; new, york, is occur twice, big and old once. A PMI at the threshold is taken."""
    counted(BY_HAND, tmp_path)
    assert measured(tmp_path, 8, min_pmi=2.0) == {
        ("new", "york"): {"count": 2, "pmi_bits": 2.0},  # log2(8 * 2 / (2 * 2))
        ("york", "is"): {"count": 2, "pmi_bits": 2.0},
        ("is", "big"): {"count": 1, "pmi_bits": 2.0},  # log2(8 * 1 / (2 * 1))
        ("is", "old"): {"count": 1, "pmi_bits": 2.0},
        ("new", "york", "is"): {"count": 2, "pmi_bits": 4.0},  # log2(64 * 2 / (2 * 2 * 2))
        ("york", "is", "big"): {"count": 1, "pmi_bits": 4.0},
        ("york", "is", "old"): {"count": 1, "pmi_bits": 4.0},
    }


def test_collocations_below_a_threshold_are_left_out(tmp_path):
    counted(BY_HAND, tmp_path)
    twice = {("new", "york"), ("york", "is"), ("new", "york", "is")}
    assert measured(tmp_path, 8, min_count=2, min_pmi=2.0).keys() == twice
    above = measured(tmp_path, 8, min_pmi=2.0000001).keys()
    assert {len(gram) for gram in above} == {3}


WORDS = st.sampled_from(["x", "y", "z", "the", "of", ",", ".", "é", "😀", "10"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    lines=st.lists(st.lists(WORDS, min_size=1, max_size=12), max_size=8),
    min_count=st.integers(1, 3),
    rows=st.integers(1, 8),
    cut_up=st.booleans(),
)
def test_any_small_corpus_against_a_counter(lines, min_count, rows, cut_up, tmp_path):
    """The counts are equal even if every row group is a separate shard and every key a separate
    range.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            (("SHARD_TOKENS", 1), ("SHARD_ROWS", 1), ("RANGE_BYTES", 2**60)) if cut_up else ()
        ):
            patch.setattr(counting, name, value)
        grams, totals = counted(lines, tmp_path, min_count, rows)
    assert grams == brute_force(lines, min_count)
    assert totals["n_tokens"] == sum(map(len, lines))
    assert totals["bigram_tokens"] == totals["n_tokens"] - len(lines)


def test_the_largest_numbers_stand_in_a_key():
    last = counting.MAX_WORDS - 1
    with duckdb_session.session() as con:
        con.register(
            "shard", pa.table({"sentence_id": [0, 1], "ids": [[last] * 3, [last + 1] * 3]})
        )
        counts = duckdb_session.run(con, "collocations/trigram_counts", first_id=0, end_id=last + 1)
        assert counts.fetchall() == [(2**63 - 1, 1)]
        con.register("counted", pa.table({"key": [2**63 - 1, 2**63 - 1, 5], "count": [1, 2, 1]}))
        every = {"first_key": 0, "last_key": 2**63 - 1}
        merged = duckdb_session.run(con, "collocations/merge_trigrams", min_count=2, **every)
        assert merged.fetchall() == [(last, last, last, 3)]
        con.register(
            "counted",
            pa.table({"key": [2**42 - 1, (7 << 21) + 9, (7 << 21) + 9], "count": [1, 2, 1]}),
        )
        merged = duckdb_session.run(con, "collocations/merge_bigrams", min_count=1, **every)
        assert merged.fetchall() == [(7, 9, 3), (last, last, 1)]
        some = {"first_key": (7 << 21) + 9, "last_key": 2**42 - 2}
        assert duckdb_session.run(
            con, "collocations/merge_bigrams", min_count=1, **some
        ).fetchall() == [(7, 9, 3)]


LINES = [
    line.split()
    for line in ("x y z x y , the x y", "y", "z x y z x", "x y", ", x y z .", "z z z", "y z x")
]


def test_an_interrupted_count_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "SHARD_TOKENS", 1)
    done = []
    interrupted_at = {3}
    counts = counting.count_shard

    def failing(shard, **given):
        if len(done) in interrupted_at:
            interrupted_at.clear()
            raise KeyboardInterrupt
        done.append(shard.base.name)
        return counts(shard, **given)

    files = write_tokens(LINES, tmp_path, rows=1)
    monkeypatch.setattr(counting, "count_shard", failing)
    with pytest.raises(KeyboardInterrupt):
        count(*files, tmp_path / "ngrams", 1, machine(tmp_path))
    assert not (tmp_path / "ngrams").exists()
    totals = count(*files, tmp_path / "ngrams", 1, machine(tmp_path))
    assert done == [f"{n:06}" for n in range(len(LINES))]  # each shard once, over both runs
    assert counted(LINES, tmp_path)[1] == totals


@pytest.fixture
def city(tmp_path):
    """Counts of N = 10 words: c(new) = 3, c(york) = 2, c(city) = 2, c(new york) = 2, c(new york
    city) = 2.
    """
    counted(["new york city hall".split(), "new york city".split(), "new car q".split()], tmp_path)
    return tmp_path


def test_measures_of_a_pair_by_hand(city):
    """The table is 2 1 / 0 7 with margins 3 7 / 2 8: the cell of 0 adds nothing to llr."""
    assert measured(city, measures=ALL)["new", "york"] == {
        "count": 2,
        "pmi_bits": pytest.approx(math.log2(10 / 3), abs=1e-9),
        "npmi": pytest.approx(math.log2(10 / 3) / math.log2(5), abs=1e-9),
        "llr": pytest.approx(
            2 * (2 * math.log(2 / 0.6) + math.log(1 / 2.4) + 7 * math.log(7 / 5.6)), abs=1e-9
        ),
        "t_score": pytest.approx((2 - 0.6) / math.sqrt(2), abs=1e-9),
    }


def test_measures_of_a_triple_by_hand(city):
    expected = 3 * 2 * 2 / 100
    bits = math.log2(2 / expected)
    rest = 8 * math.log(8 / (10 - expected))
    assert measured(city, measures=ALL)["new", "york", "city"] == {
        "count": 2,
        "pmi_bits": pytest.approx(bits, abs=1e-9),
        "npmi": pytest.approx(bits / (2 * math.log2(5)), abs=1e-9),
        "llr": pytest.approx(2 * (2 * math.log(2 / expected) + rest), abs=1e-9),
        "t_score": pytest.approx((2 - expected) / math.sqrt(2), abs=1e-9),
    }


@pytest.mark.parametrize("measure", ["npmi", "llr", "t_score"])
def test_a_threshold_of_a_measure_is_included(city, measure):
    found = measured(city, measures=ALL)
    edge = found["new", "york"][measure]
    kept = measured(city, **{f"min_{measure}": edge})
    assert kept.keys() == {gram for gram, row in found.items() if row[measure] >= edge}
    assert ("new", "york") in kept
    assert len(kept) < len(found)


def test_a_measure_is_written_only_if_it_is_asked_for(city):
    assert [*measured(city)["new", "york"]] == ["count", "pmi_bits"]


def test_scoring_in_pieces_changes_nothing(city):
    whole = [*measured(city).items()]
    for name in ("bigrams", "trigrams"):
        file = city / "ngrams" / f"{name}.parquet"
        pq.write_table(pq.read_table(file), file, row_group_size=1)
    assert [*measured(city).items()] == whole


def test_corpora_that_are_refused(tmp_path, monkeypatch):
    """Rare words do not count towards the limit of a key: no n-gram is more frequent than its
    rarest word."""
    tokens, _ = write_tokens(LINES, tmp_path)
    (tmp_path / "other").mkdir()
    _, words = write_tokens([*LINES, ["x"]], tmp_path / "other")
    with pytest.raises(RequestError, match="counts another number of tokens"):
        count(tokens, words, tmp_path / "ngrams", 1, machine(tmp_path))
    monkeypatch.setattr(counting, "MAX_WORDS", 3)
    lines = ["a a b b c c d e f".split()]
    assert counted(lines, tmp_path, min_count=2)[1]["n_words"] == 6
    with pytest.raises(
        RequestError, match=r"6 different words occur at least 1 times; .* Raise count\.min_count"
    ):
        counted(lines, tmp_path, min_count=1)


def test_a_base_adds_the_collocations_that_the_corpus_lacks(tmp_path):
    lines = ["new york is big".split(), "new york is old".split()]
    _, totals = counted(lines, tmp_path)
    params = CollocationParams(min_count=1, min_pmi=2.0)
    own = measured(tmp_path, totals["n_tokens"], min_pmi=2.0)
    pairs = {
        "first_word": ["new", "red"],
        "second_word": ["york", "tape"],
        "count": [900, 80],
        "pmi_bits": [7.0, 6.5],
    }
    triples = {
        "first_word": ["new"],
        "second_word": ["york"],
        "third_word": ["is"],
        "count": [9],
        "pmi_bits": [1.0],
    }
    base = {"bigrams": pa.table(pairs), "trigrams": pa.table(triples)}
    kept = build(
        tmp_path / "ngrams", totals["n_tokens"], tmp_path / "with", params, machine(tmp_path), base
    )
    assert (kept["base_bigrams"], kept["base_trigrams"]) == (1, 0)
    assert pq.read_table(tmp_path / "with" / "base_bigrams.parquet").equals(
        base["bigrams"].slice(1)
    )
    for name in ("bigrams", "trigrams"):
        alone = (tmp_path / "collocations" / f"{name}.parquet").read_bytes()
        assert (tmp_path / "with" / f"{name}.parquet").read_bytes() == alone
    assert own[("new", "york")]["count"] == 2
