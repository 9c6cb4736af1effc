"""Sampling: seeded, independent of order and sharding, duplicates removed."""

import gzip
import hashlib
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.base.errors import MissingArtifactError, ParameterError
from lexveil.io.config import MachineParams, SampleParams, load_params
from lexveil.lab.collocations import sampling
from lexveil.lab.collocations.sampling import sample, tokenize

MACHINE = MachineParams()
PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")
TEXTS = [f"Document {i} says hello. It ends." for i in range(60)]


def shards(folder, *parts):
    folder.mkdir()
    for number, part in enumerate(parts):
        with gzip.open(
            folder / f"corpus-train.{number:05}-of-00009.json.gz", "wt", encoding="utf-8"
        ) as file:
            file.writelines(
                json.dumps({"url": None, "text": text, "timestamp": "x"}) + "\n" for text in part
            )
    return folder


def machine(folder, workers=1):
    return MachineParams(
        memory_limit="500MB", threads=1, workers=workers, temp_directory=str(folder / "work")
    )


def params(n, seed=1, weights=None):
    return PARAMS.model_copy(
        update={"seed": seed, "sample": SampleParams(max_documents=n, weights=weights or {})}
    )


def drawn(corpus, n, seed=1):
    out = corpus.parent / f"{corpus.name}-{n}-{seed}.parquet"
    sample(corpus, out, params(n, seed), MACHINE)
    return pq.read_table(out).column("text").to_pylist()


def test_order_and_sharding_do_not_matter(tmp_path):
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    one = drawn(shards(tmp_path / "one", TEXTS), 20)
    other = drawn(shards(tmp_path / "other", shuffled[:7], shuffled[7:], TEXTS[:5]), 20)
    assert one == other and len(set(one)) == 20
    assert (tmp_path / "one-20-1.parquet").read_bytes() == (
        tmp_path / "other-20-1.parquet"
    ).read_bytes()
    corpus = tmp_path / "one"
    # a larger one keeps the smaller
    assert drawn(corpus, 20, seed=2) != one and set(drawn(corpus, 10)) < set(one)
    assert sorted(drawn(corpus, 10_000)) == sorted(TEXTS)
    blanks = drawn(shards(tmp_path / "blanks", ["a", "b", "a", " ", "", "a "]), 9)
    assert blanks == sorted(
        ["a", "b", "a "], key=lambda text: hashlib.md5(text.encode()).hexdigest()
    )


def test_many_small_shards_fit_into_the_default_memory(tmp_path):
    """With buffers for the longest allowed document in each shard, even a few shards would
    not fit.
    """
    folder = shards(
        tmp_path / "c", *([f"{n} {i} " + "abc " * 400 for i in range(150)] for n in range(60))
    )
    assert sample(
        folder, tmp_path / "s.parquet", PARAMS, MachineParams(temp_directory=str(tmp_path / "work"))
    ) == {"": 9000}


def test_a_document_of_twenty_megabytes_is_read(tmp_path):
    long = "word " * 4_000_000
    corpus = shards(tmp_path / "c", ["short"], [long])
    assert set(drawn(corpus, 9)) == {"short", long}


def mixed(folder, **sources):
    folder.mkdir()
    for name, texts in sources.items():
        shards(folder / name, texts)
    return folder


def test_a_heavier_source_is_drawn_by_its_weight(tmp_path):
    """Few of many: each draw is of `a` with probability 3·1000 / (3·1000 + 2000), within 6 standard
    errors."""
    corpus = mixed(
        tmp_path / "c", a=[f"a {i}" for i in range(1000)], b=[f"b {i}" for i in range(2000)]
    )
    out = tmp_path / "out.parquet"
    of_a = 0
    for seed in range(10):
        found = sample(corpus, out, params(50, seed, {"a": 3.0}), MACHINE)
        assert sum(found.values()) == 50
        table = pq.read_table(out)
        assert [text[0] for text in table.column("text").to_pylist()] == table.column(
            "source"
        ).to_pylist()
        of_a += found["a"]
    assert abs(of_a - 300) < 6 * (500 * 0.6 * 0.4) ** 0.5
    assert sample(corpus, out, params(9999, 1, {"a": 3.0}), MACHINE) == {
        "a": 1000,
        "b": 2000,
    }
    corpus = mixed(tmp_path / "same", a=["same", "only a"], b=["same", "only b"], c=["same"])
    sample(
        corpus, out, params(9, 1, {"b": 2.0, "c": 0.0}), MachineParams()
    )  # what two have is of the heavier
    found = dict(
        zip(
            *(pq.read_table(out).column(name).to_pylist() for name in ("text", "source")),
            strict=True,
        )
    )
    assert found == {"same": "b", "only a": "a", "only b": "b"}
    for weights, message in (
        ({"tickets": 2.0}, r"sample\.weights\.tickets names no source .*its sources: a, b"),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, "all weights are 0"),
    ):
        with pytest.raises(ParameterError, match=message):
            sample(corpus, tmp_path / "none.parquet", params(9, 1, weights), MACHINE)
    with pytest.raises(MissingArtifactError, match="lexveil data default"):
        sample(tmp_path / "nothing", tmp_path / "none.parquet", params(1), MACHINE)
    assert not (tmp_path / "none.parquet").exists()


def test_the_vocabulary_does_not_depend_on_shards_and_workers(tmp_path, monkeypatch):
    """Punctuation, connectors, words, each by falling count and then by themselves."""
    # one has no token
    texts = {"doc_id": ["a", "b", "c"], "text": ["b a the a, b c.", "\u3000", "the c d. A b"]}
    pq.write_table(pa.table(texts), tmp_path / "sample.parquet")
    monkeypatch.setattr("lexveil.lab.collocations.sampling.SMALL_CORPUS", 1)
    found = []
    for batch, most, workers in ((5000, 10**9, 1), (1, 10**9, 2), (5000, 1, 1)):
        monkeypatch.setattr("lexveil.lab.collocations.sampling.DOCUMENTS_OF_A_BATCH", batch)
        monkeypatch.setattr("lexveil.lab.collocations.sampling.BATCH_BYTES", most)
        files = tmp_path / f"tokens-{batch}-{most}", tmp_path / f"words-{batch}-{most}"
        tokenize(tmp_path / "sample.parquet", *files, machine(tmp_path, workers))
        found.append([pq.read_table(file).to_pydict() for file in files])
    assert found[0] == found[1] == found[2]
    assert found[0][0]["doc_id"] == ["a", "c", "c"] and found[0][0]["sentence_id"] == [0, 0, 1]
    assert [found[0][1]["word"][i] for i in found[0][0]["ids"][2]] == ["a", "b"]
    words = [".", ",", "a", "the", "b", "c", "d"]
    kinds = ["punctuation"] * 2 + ["connector"] * 2 + ["word"] * 3
    counts = [2, 1, 3, 2, 3, 2, 1]
    assert found[0][1] == {"word_id": list(range(7)), "word": words, "count": counts, "kind": kinds}


def test_an_interrupted_tokenization_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("lexveil.lab.collocations.sampling.DOCUMENTS_OF_A_BATCH", 10)
    sample(shards(tmp_path / "c", TEXTS), tmp_path / "sample.parquet", params(60), MACHINE)
    one = machine(tmp_path)
    tokenize(tmp_path / "sample.parquet", tmp_path / "tokens-1", tmp_path / "words-1", one)
    done = []
    interrupted_at = {4}
    cut = sampling.tokenize_shard

    def failing(shard):
        if len(done) in interrupted_at:
            interrupted_at.clear()
            raise KeyboardInterrupt
        done.append(shard.number)
        return cut(shard)

    monkeypatch.setattr("lexveil.lab.collocations.sampling.tokenize_shard", failing)
    with pytest.raises(KeyboardInterrupt):
        tokenize(tmp_path / "sample.parquet", tmp_path / "tokens-2", tmp_path / "words-2", one)
    assert not (tmp_path / "tokens-2").exists()
    tokenize(tmp_path / "sample.parquet", tmp_path / "tokens-2", tmp_path / "words-2", one)
    assert done == [0, 1, 2, 3, 4, 5]  # each once
    for name in ("tokens", "words"):
        assert (tmp_path / f"{name}-1").read_bytes() == (tmp_path / f"{name}-2").read_bytes()
    assert list((tmp_path / "work").iterdir()) == []
