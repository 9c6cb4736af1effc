"""Sampling: seeded, independent of order and sharding, duplicates removed."""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.errors import MissingArtifact
from tasks.io.params import MachineParams, Params, SampleParams, load_params
from tasks.sample_corpus import sample, tokenize

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")
TEXTS = [f"Document {i} says hello. It ends." for i in range(60)]


def shards(folder: Path, *parts: list[str]) -> Path:
    folder.mkdir()
    for number, part in enumerate(parts):
        with gzip.open(folder / f"corpus-train.{number:05}-of-00009.json.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps({"url": None, "text": text, "timestamp": "x"}) + "\n" for text in part)
    return folder


def machine(folder: Path, workers: int = 1) -> MachineParams:
    return MachineParams(memory_limit="500MB", threads=1, workers=workers, temp_directory=str(folder / "work"))


def params(n: int, seed: int = 1) -> Params:
    return replace(PARAMS, seed=seed, sample=SampleParams(n))


def drawn(corpus: Path, n: int, seed: int = 1) -> list[str]:
    out = corpus.parent / f"{corpus.name}-{n}-{seed}.parquet"
    sample(corpus, out, params(n, seed))
    return pq.read_table(out).column("text").to_pylist()


def test_order_and_sharding_do_not_matter(tmp_path: Path) -> None:
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    one = drawn(shards(tmp_path / "one", TEXTS), 20)
    other = drawn(shards(tmp_path / "other", shuffled[:7], shuffled[7:], TEXTS[:5]), 20)
    assert one == other
    assert len(set(one)) == 20
    assert (tmp_path / "one-20-1.parquet").read_bytes() == (tmp_path / "other-20-1.parquet").read_bytes()


def test_seed_and_size(tmp_path: Path) -> None:
    corpus = shards(tmp_path / "c", TEXTS)
    assert drawn(corpus, 20, seed=2) != drawn(corpus, 20, seed=1)
    assert set(drawn(corpus, 10)) < set(drawn(corpus, 20))  # a larger sample keeps the smaller one
    assert sorted(drawn(corpus, 10_000)) == sorted(TEXTS)


def test_duplicates_and_blanks_are_left_out(tmp_path: Path) -> None:
    assert drawn(shards(tmp_path / "c", ["a", "b", "a", " ", "", "a "]), 9) == sorted(
        ["a", "b", "a "], key=lambda text: __import__("hashlib").md5(text.encode()).hexdigest()
    )


def test_tokens_do_not_depend_on_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.sample_corpus.SMALL", 1)
    monkeypatch.setattr("tasks.sample_corpus.BATCH", 7)
    sample(shards(tmp_path / "c", TEXTS), tmp_path / "sample.parquet", params(60))
    written = set()
    for workers in (1, 2):
        files = tmp_path / f"tokens-{workers}", tmp_path / f"words-{workers}"
        assert tokenize(tmp_path / "sample.parquet", *files, machine(tmp_path, workers)) == 120
        written.add(tuple(file.read_bytes() for file in files))
    assert len(written) == 1
    tokens, words = (pq.read_table(file).to_pydict() for file in files)
    assert [words["word"][i] for i in tokens["ids"][1]] == ["it", "ends", "."]


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(MissingArtifact, match="lexveil data default"):
        sample(tmp_path, tmp_path / "out.parquet", params(1))
