"""The embedded default: the same bytes everywhere, and fit for what it is there for."""

import hashlib
import subprocess
import sys
from pathlib import Path

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
    """Another process has another hash seed: no order of a set may have a say. Importing gensim takes seconds."""
    code = f"import pathlib, sys, lexveil.data.data_store as p; p.materialize_default(pathlib.Path({str(tmp_path)!r}))"
    code += "; assert 'gensim' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], env={"PYTHONHASHSEED": "12345"}
    )
    assert tree(tmp_path / "data") == tree(made)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lexveil", "data"]


def test_altered_test_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(default.TEST_DATA, "lee.cor", "0" * 64)
    with pytest.raises(RequestError, match=r"lee\.cor"):
        default.articles()
