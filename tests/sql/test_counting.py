"""Counting and PMI: by hand, against a brute-force Counter, and by what must always hold."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.build_collocations import build
from tasks.count_ngrams import count
from tasks.io.params import CollocationParams, MachineParams
from tasks.sample_corpus import TOKENS, kind_of
from tasks.text.function_words import CONNECTORS
from tasks.text.tokenize import has_letters, sentences

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "corpus"


def machine(folder: Path, **limits: int | str) -> MachineParams:
    return MachineParams(
        **{"memory_limit": "1GB", "threads": 2, "workers": 1, "temp_directory": str(folder / "w"), **limits}
    )


def write_tokens(lines: list[list[str]], folder: Path, rows: int = 1000) -> tuple[Path, Path]:
    """Sentences as the corpus stage writes them, in row groups of ``rows`` sentences."""
    counts = Counter(word for line in lines for word in line)
    words = sorted(counts, key=lambda word: (kind_of(word), -counts[word], word))
    ids = {word: number for number, word in enumerate(words)}
    kinds = [("punctuation", "connector", "word")[kind_of(word)] for word in words]
    vocabulary = {"word": pa.array(words, pa.string()), "count": pa.array([counts[word] for word in words], pa.int64())}
    table = {"word_id": pa.array(range(len(words)), pa.int32()), **vocabulary, "kind": pa.array(kinds, pa.string())}
    pq.write_table(pa.table(table), folder / "words.parquet")
    sentences = [["d"] * len(lines), list(range(len(lines))), [[ids[word] for word in line] for line in lines]]
    pq.write_table(pa.table(sentences, TOKENS), folder / "tokens.parquet", row_group_size=rows)
    return folder / "tokens.parquet", folder / "words.parquet"


def counted(lines: list[list[str]], folder: Path, min_count: int = 1, rows: int = 1000) -> tuple[dict, dict[str, int]]:
    """Counts by n-gram of words, from the files that the stage writes."""
    totals = count(*write_tokens(lines, folder, rows), folder / "ngrams", min_count, machine(folder))
    words = pq.read_table(folder / "ngrams" / "words.parquet").to_pydict()
    assert words["word_id"] == list(range(len(words["word"])))
    found: dict[tuple[str, ...], int] = {(word,): n for word, n in zip(words["word"], words["count"], strict=True)}
    for name in ("bigrams", "trigrams"):
        table = pq.read_table(folder / "ngrams" / f"{name}.parquet").to_pydict()
        *ids, counts = table.values()
        found |= {tuple(words["word"][i] for i in key): n for *key, n in zip(*ids, counts, strict=True)}
    return found, totals


def brute_force(lines: list[list[str]], min_count: int = 1) -> dict[tuple[str, ...], int]:
    """Count every n-gram of up to three words inside each sentence; a word without letters, or a connector, ends it."""
    grams = Counter(tuple(line[i : i + n]) for line in lines for n in (1, 2, 3) for i in range(len(line) - n + 1))
    return {
        gram: n
        for gram, n in grams.items()
        if len(gram) == 1 or (n >= min_count and all(has_letters(word) and word not in CONNECTORS for word in gram))
    }


def collocations(folder: Path, n_tokens: int, params: CollocationParams) -> dict[tuple[str, ...], tuple[int, float]]:
    build(folder / "ngrams", n_tokens, folder / "collocations", params, machine(folder))
    found = {}
    for name in ("bigrams", "trigrams"):
        *words, counts, pmi = pq.read_table(folder / "collocations" / f"{name}.parquet").to_pydict().values()
        found |= {tuple(key): (n, bits) for *key, n, bits in zip(*words, counts, pmi, strict=True)}
    return found


def test_by_hand(tmp_path: Path) -> None:
    """new york is big / new york is old: N = 8; new, york, is occur twice, big and old once."""
    lines = ["new york is big".split(), "new york is old".split()]
    grams, totals = counted(lines, tmp_path)
    assert grams[("new", "york")] == 2
    assert grams[("york", "is", "old")] == 1
    assert ("big", "new") not in grams  # it would cross a sentence
    assert totals == {
        "n_documents": 1, "n_sentences": 2, "n_tokens": 8, "bigram_tokens": 6, "trigram_tokens": 4,
        "n_bigrams": 4, "n_trigrams": 3, "n_words": 5,
    }  # fmt: skip
    found = collocations(tmp_path, 8, CollocationParams(min_count=1, min_pmi=2.0))
    assert found[("new", "york")] == (2, 2.0)  # log2(8 * 2 / (2 * 2))
    assert found[("new", "york", "is")] == (2, 4.0)  # log2(64 * 2 / (2 * 2 * 2))
    assert found[("is", "old")] == (1, 2.0)  # log2(8 * 1 / (2 * 1))


def test_thresholds_keep_their_edge(tmp_path: Path) -> None:
    counted(["new york is big".split(), "new york is old".split()], tmp_path)
    assert ("is", "old") in collocations(tmp_path, 8, CollocationParams(1, 2.0))
    assert ("is", "old") not in collocations(tmp_path, 8, CollocationParams(2, 2.0))
    assert ("new", "york") not in collocations(tmp_path, 8, CollocationParams(1, 2.0000001))


WORDS = st.sampled_from(["x", "y", "z", "the", "of", ",", ".", "é", "😀", "10"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(lines=st.lists(st.lists(WORDS, min_size=1, max_size=12), min_size=1, max_size=8), min_count=st.integers(1, 3))
def test_any_small_corpus_against_a_counter(lines: list[list[str]], min_count: int, tmp_path: Path) -> None:
    grams, totals = counted(lines, tmp_path, min_count)
    assert grams == brute_force(lines, min_count)
    assert totals["n_tokens"] == sum(map(len, lines))
    assert totals["bigram_tokens"] == totals["n_tokens"] - len(lines)


def test_bigrams_sum_to_tokens_minus_sentences(tmp_path: Path) -> None:
    """With no connectors and no marks nothing is left out, so the stored counts add up to every adjacent pair."""
    lines = [list("xyzxy"), list("y"), list("zxyzx")]
    grams, totals = counted(lines, tmp_path)
    assert sum(n for gram, n in grams.items() if len(gram) == 2) == totals["bigram_tokens"] == 11 - 3


def documents() -> Iterator[str]:
    for shard in sorted(SHARED.glob("*validation*.json.gz")):
        with gzip.open(shard, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


@pytest.mark.skipif(not SHARED.exists(), reason="real corpora are not beside the project")
def test_two_thousand_real_documents_against_a_counter(tmp_path: Path) -> None:
    """Counts bit for bit, PMI to 1e-9."""
    lines = [line for _, text in zip(range(2000), documents(), strict=False) for line in sentences(text)]
    grams, totals = counted(lines, tmp_path)
    expected = brute_force(lines)
    assert grams == expected
    n = totals["n_tokens"]
    assert n == sum(map(len, lines))
    found = collocations(tmp_path, n, CollocationParams(min_count=1, min_pmi=2.0))

    def pmi(gram: tuple[str, ...]) -> float:
        return math.log2(n ** (len(gram) - 1) * expected[gram] / math.prod(expected[(word,)] for word in gram))

    wanted = {gram: pmi(gram) for gram in expected if len(gram) > 1}
    # At the threshold itself the last bit may fall on either side.
    assert {gram for gram, bits in wanted.items() if bits >= 2.0 + 1e-9} <= found.keys()
    assert found.keys() <= {gram for gram, bits in wanted.items() if bits >= 2.0 - 1e-9}
    assert max(abs(bits - wanted[gram]) for gram, (_, bits) in found.items()) <= 1e-9
    assert len(found) > 100_000
