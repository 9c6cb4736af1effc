"""The commands of `lexveil data` with the real DVC, and the documents as later stages read them."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from intake_files import write

from lexveil.base.errors import RequestError
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.lab.data import data_store

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2]


@pytest.fixture
def real(tmp_path):
    """An empty project under Git and DVC."""
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "dvc.yaml").write_text("stages: {}\n")
    (folder / ".gitignore").write_bytes((HERE / ".gitignore").read_bytes())
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], cwd=folder, check=True)
    return folder


def test_without_data_nothing_is_tracked(real):
    assert data_store.status(real) == data_store.DataStatus("no", None, [], {})


@pytest.fixture
def with_default(real):
    """A project with the default data."""
    assert data_store.use_default(real) == {"unchanged": False}
    return real


def test_the_default_data_are_tracked_and_counted(with_default):
    described = data_store.status(with_default)
    assert described.tracked == "yes"
    assert described.corpus.documents == 350
    assert described.documents["drug_reviews"].parts == {"test": 379, "train": 600}


def test_a_source_with_no_plain_name_is_refused(real, tmp_path):
    file = write(tmp_path / "web.csv", [{"text": "a b"}])
    with pytest.raises(RequestError, match=r"corpus \.\./x=…: the name of a source"):
        data_store.use(data_store.DataRequest({"../x": file}), real)


def test_sources_that_are_used_are_tracked_and_counted(real, tmp_path):
    ignored = (real / ".gitignore").read_bytes()
    web = write(tmp_path / "web.csv", [{"text": "a b"}, {"text": "c"}, {"text": ""}])
    tickets = write(tmp_path / "tickets.jsonl", [{"text": "d"}])
    summary = data_store.use(data_store.DataRequest({"web": web, "tickets": tickets}), real)
    found = {name: facts.documents for name, facts in summary.corpus.items()}
    assert found == {"web": 2, "tickets": 1}
    assert "corpus/web: 1 rows without text were skipped" in summary.notes
    described = data_store.status(real)
    assert (described.tracked, described.corpus.parts) == ("yes", {"tickets": 1, "web": 2})
    assert (real / ".gitignore").read_bytes() == ignored


def test_after_a_killed_use_dvc_gets_what_is_there_before_the_next(with_default, tmp_path):
    """The command was killed between the renames and `dvc add`."""
    (with_default / "data").rename(with_default / data_store.PREVIOUS)
    new = write(with_default / "data/corpus/new.json.gz", [{"text": "a b"}])
    digest = hashlib.md5(new.read_bytes()).hexdigest()
    web = write(tmp_path / "web.csv", [{"text": "a b"}])
    data_store.use(data_store.DataRequest({"web": web}), with_default)
    assert (with_default / ".dvc/cache/files/md5" / digest[:2] / digest[2:]).exists()
    assert data_store.status(with_default).corpus.parts == {"web": 1}
    assert list((with_default / ".lexveil").iterdir()) == []


def test_data_that_somebody_changed_are_not_replaced(with_default):
    next((with_default / "data/corpus").iterdir()).unlink()
    assert data_store.status(with_default).tracked == "changed"
    with pytest.raises(RequestError, match="dvc add data"):
        data_store.use_default(with_default)


def test_documents_are_read_as_one_table(tmp_path):
    """Files without optional columns and with labels as numbers go together; order is (dataset,
    doc_id)."""
    pq.write_table(
        pa.table({"doc_id": ["2", "10"], "text": ["x", ""], "label": [1, 0], "more": [1, 1]}),
        tmp_path / "b.parquet",
    )
    pq.write_table(
        pa.table({"text": ["y"], "doc_id": ["1"], "split": ["dev"]}), tmp_path / "a.parquet"
    )
    table = load_documents(tmp_path)
    assert table.column_names == [
        "dataset",
        "doc_id",
        "split",
        "text",
        "text_b",
        "label",
        "attribute",
        "context",
    ]
    assert set(table.schema.types) == {pa.string()}
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("a", "1", "dev", "y", None, None, None, None),
        ("b", "10", "all", "", None, "0", None, None),
        ("b", "2", "all", "x", None, "1", None, None),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "lexveil data default"),
        (pa.table({"doc_id": ["1"], "text": pa.array([None], pa.string())}), "no text"),
        (pa.table({"text": ["a"]}), "no doc_id"),
        (b"PAR1 but not really", "not a sound Parquet file"),
    ],
)
def test_documents_that_cannot_be_used(tmp_path, content, said):
    if isinstance(content, bytes):
        (tmp_path / "x.parquet").write_bytes(content)
    elif content is not None:
        pq.write_table(content, tmp_path / "x.parquet")
    with pytest.raises(RequestError, match=said):
        load_documents(tmp_path)
    with pytest.raises(RequestError, match="lexveil data default"):
        load_documents(tmp_path / "absent")


def test_a_damaged_file_in_data_is_named(root):
    data_store.use_default(root)
    path = root / "data/documents/drug_reviews.parquet"
    path.unlink()
    path.write_bytes(b"PAR1")
    with pytest.raises(RequestError, match=r"drug_reviews\.parquet: damaged"):
        data_store.status(root)
    path.unlink()
    shard = next((root / "data/corpus").iterdir())
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content[:-10])
    with pytest.raises(RequestError, match=r"json\.gz: damaged"):
        data_store.status(root)
