"""The embedded default: the same bytes everywhere, and fit for what it is there for."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from intake_files import tree

from lexveil.data import data_store, default
from lexveil.errors import RequestError
from tests.shared_trees import share

# A change here changes the committed data.dvc and every number made from the default data: on purpose only.
MD5 = {
    "corpus/corpus-train.00000-of-00001.json.gz": "831708906e34fedeedff5f7b4eee3faf",
    "documents/pang_lee.parquet": "02cc210ea9f24a2425c5deda839d26e1",
    "documents/reviews.parquet": "7b624e662257dbc2643f6437694eb45c",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default data."""
    root = tmp_path_factory.mktemp("default")
    data_store.materialize_default(root)
    share(root)
    return root / "data"


def test_the_bytes_are_the_committed_ones(made: Path) -> None:
    assert {name: hashlib.md5(content).hexdigest() for name, content in tree(made).items()} == MD5


def test_twice_the_same_in_another_folder_and_process(made: Path, tmp_path: Path) -> None:
    """Another process has another hash seed: no order of a set may have a say."""
    code = f"import pathlib, lexveil.data.data_store as p; p.materialize_default(pathlib.Path({str(tmp_path)!r}))"
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], env={"PYTHONHASHSEED": "12345"}
    )
    assert tree(tmp_path / "data") == tree(made)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lexveil", "data"]


def test_gensim_is_not_imported() -> None:
    """Its import takes seconds, and only its test data is wanted."""
    code = "import sys; from lexveil.data import default; default.articles(); assert 'gensim' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_altered_test_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(default.TEST_DATA, "lee.cor", "0" * 64)
    with pytest.raises(RequestError, match=r"lee\.cor"):
        default.articles()


def test_the_corpus_is_the_lee_corpus(made: Path) -> None:
    with gzip.open(made / "corpus/corpus-train.00000-of-00001.json.gz", "rb") as shard:
        rows = [json.loads(line) for line in shard]
    assert len(rows) == 350
    assert len({row["text"] for row in rows}) == 343  # a few articles stand there twice, as in the original
    assert all(list(row) == ["text", "timestamp", "url"] for row in rows)
    assert rows[0]["text"].startswith("Hundreds of people have been forced to vacate their homes")
    assert any("£3,000" in row["text"] for row in rows)
    assert 60_000 < sum(len(row["text"].split()) for row in rows) < 66_000


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_000])
def test_a_stored_gzip_is_a_gzip(size: int) -> None:
    content = bytes(n * n % 251 for n in range(size))
    blob = default.stored_gzip(content)
    assert gzip.decompress(blob) == content
    assert blob[3:8] == bytes(5)  # no flags, no time


def test_labels_are_balanced_in_both_splits(made: Path) -> None:
    for name, train, validation in [("pang_lee", 80, 20), ("reviews", 96, 24)]:
        rows = pq.read_table(made / f"documents/{name}.parquet").to_pylist()
        counts = Counter((row["split"], row["label"]) for row in rows)
        assert counts == {
            (split, label): n for split, n in (("train", train), ("validation", validation)) for label in "01"
        }
        assert len({row["doc_id"] for row in rows}) == len({row["text"] for row in rows}) == len(rows)


def test_pang_lee_keeps_its_labels_and_accents(made: Path) -> None:
    rows = {row["text"]: row["label"] for row in pq.read_table(made / "documents/pang_lee.parquet").to_pylist()}
    assert rows["simplistic , silly and tedious ."] == "0"
    assert rows["the action clichés just pile up ."] == "0"


class Review(NamedTuple):
    author: str
    label: str
    split: str
    text: str


@pytest.fixture(scope="module")
def written(made: Path) -> list[Review]:
    rows = pq.read_table(made / "documents/reviews.parquet").to_pylist()
    return [Review(row["attribute"], row["label"], row["split"], row["text"]) for row in rows]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def test_reviews_are_english_in_words_of_the_corpus(written: list[Review]) -> None:
    known = Counter(word for text in default.articles() for word in words(text))
    assert min(known[word] for review in written for word in words(review.text)) >= 2
    for review in written:
        assert re.fullmatch(r"[A-Z][A-Za-z ,]*\.( [A-Z][A-Za-z ,]*\.)+", review.text)
        assert not re.search(r" ,|  |\ba [aeiou]|\ban [^aeiou]", review.text)
    assert 15 < sum(len(words(review.text)) for review in written) / len(written) < 35


def accuracy(written: list[Review], trait: Callable[[Review], str]) -> float:
    """Of a naive Bayes classifier over words, trained on train, on validation."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for review in written:
        if review.split == "train":
            counts[trait(review)].update(words(review.text))
    size = len({word for count in counts.values() for word in count})

    def guess(review: Review) -> str:
        def score(name: str) -> float:
            total = sum(counts[name].values()) + size
            return sum(math.log((counts[name][word] + 1) / total) for word in words(review.text))

        return max(sorted(counts), key=score)

    held_out = [review for review in written if review.split == "validation"]
    return sum(guess(review) == trait(review) for review in held_out) / len(held_out)


def test_authors_can_be_told_apart_and_not_perfectly(written: list[Review]) -> None:
    """Four authors: chance is 0.25. Without habits the same attacker is near chance, so the test can say no."""
    assert {review.author for review in written} == {"ash", "birch", "cedar", "elm"}
    assert 0.5 < accuracy(written, lambda review: review.author) < 0.95
    assert accuracy(written, lambda review: review.label) > 0.8
    shuffled = [
        Review(written[(n * 7 + 3) % len(written)].author, review.label, review.split, review.text)
        for n, review in enumerate(written)
    ]
    assert accuracy(shuffled, lambda review: review.author) < 0.5
