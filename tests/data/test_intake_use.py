"""`lexveil data use`: what comes in, what is refused, and that what was there stays there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from intake_files import Rows, parquet, tree, write

from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.data import corpus, data_store, documents
from lexveil.errors import LexveilError, RequestError
from lexveil.formats.input_files import find_sources
from lexveil.formats.readers import open_table
from lexveil.formats.values import plain_value

ROOT = Path(__file__).parents[2]
SECRET = "Zanzibar"  # stands in every text, and must stand in no message
TEXTS = [f"One {SECRET}.", f'She said "{SECRET}", twice.', f"Drei Wörter, {SECRET} – ✓."]
ROWS: Rows = [{"text": text} for text in TEXTS]


def shards(root: Path) -> list[dict[str, Any]]:
    """Every object of the project's corpus."""
    files = sorted((root / "data/corpus").iterdir())
    assert [file.name for file in files] == [
        f"corpus-train.{n:05d}-of-{len(files):05d}.json.gz" for n in range(len(files))
    ]
    return [json.loads(line) for file in files for line in gzip.open(file, "rb")]


def document_set(root: Path, name: str) -> list[dict[str, Any]]:
    table = pq.read_table(root / f"data/documents/{name}.parquet")
    assert table.schema.equals(documents.SCHEMA)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(
    "ending", "json json.gz jsonl jsonl.gz ndjson csv csv.gz tsv tsv.gz parquet txt txt.gz".split()
)
def test_every_form_gives_the_same_documents_and_corpus(root: Path, tmp_path: Path, ending: str) -> None:
    file = write(tmp_path / f"set.{ending}", ROWS)
    data_store.use(file, [file], "text", root)
    assert shards(root) == [{"text": text, "timestamp": None, "url": None} for text in TEXTS]
    empty = {"split": "all", "text_b": None, "label": None, "attribute": None}
    assert document_set(root, "set") == [
        {"doc_id": f"set-{number:06d}", "text": text, **empty} for number, text in enumerate(TEXTS, 1)
    ]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_users_ids_labels_and_splits_are_kept(root: Path, tmp_path: Path, ending: str) -> None:
    rows = [
        {"doc_id": 7, "text": "a", "text_b": "b", "split": "dev", "label": 1, "attribute": "f", "stars": 5},
        {"doc_id": 3, "text": "c", "text_b": None, "split": None, "label": None, "attribute": "m", "stars": 1},
    ]
    summary = data_store.use(None, [write(tmp_path / f"x.{ending}", rows)], "text", root)
    assert document_set(root, "x") == [
        {"doc_id": "7", "split": "dev", "text": "a", "text_b": "b", "label": "1", "attribute": "f"},
        {"doc_id": "3", "split": "all", "text": "c", "text_b": None, "label": None, "attribute": "m"},
    ]
    assert summary.documents["x"].dropped_columns == ["stars"]
    assert "documents/x: columns dropped: `stars`" in summary.notes


def test_labels_become_strings_without_a_trace_of_their_type() -> None:
    values = [1, 1.0, 0.5, True, None, float("nan"), "", "1.0", "pos", 10**20, float("inf")]
    said = [plain_value(value, "label", "here") for value in values]
    assert said == ["1", "1", "0.5", "true", None, None, None, "1.0", "pos", "100000000000000000000", "inf"]


def test_another_text_column(root: Path, tmp_path: Path) -> None:
    rows = [{"review": "good", "text": SECRET, "url": "http://x", "timestamp": "2001-01-01T00:00:00Z"}]
    file = write(tmp_path / "r.jsonl", rows)
    data_store.use(file, [file], "review", root)
    assert shards(root) == [{"text": "good", "timestamp": "2001-01-01T00:00:00Z", "url": "http://x"}]
    assert [row["text"] for row in document_set(root, "r")] == ["good"]


def test_blank_rows_of_a_corpus_are_skipped_and_counted(root: Path, tmp_path: Path) -> None:
    rows: Rows = [{"text": "a"}, {"text": None}, {"text": ""}, {"text": " \t"}, {"other": 1}, {"text": "b"}]
    summary = data_store.use(write(tmp_path / "c.jsonl", rows), [], "text", root)
    assert [row["text"] for row in shards(root)] == ["a", "b"]
    assert summary.corpus.skipped_blank == 4
    assert "corpus: 4 rows without text were skipped" in summary.notes


def test_a_corpus_is_cut_into_shards_and_the_same_bytes_come_twice(root: Path, tmp_path: Path) -> None:
    lines = [{"text": f"{n} " + "x" * 200} for n in range(500)]
    for part in range(3):
        write(tmp_path / f"in/{part}.json.gz", lines[part::3])
    sources = find_sources([tmp_path / "in"])
    trees = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        report = corpus.CorpusReport(files=0, shards=0)

        def written(report: corpus.CorpusReport = report) -> Iterator[bytes]:
            for source in sources:
                with open_table(source, "text") as table:
                    yield from report.lines(table, "text")

        assert corpus.write_shards(written(), tmp_path / name, 20_000) == 7  # 130 kB
        trees.append(tree(tmp_path / name))
    assert trees[0] == trees[1]
    read = [json.loads(line)["text"] for blob in trees[0].values() for line in gzip.decompress(blob).splitlines()]
    assert read == [row["text"] for part in range(3) for row in lines[part::3]]


def test_made_ids_tell_nothing_about_the_text(root: Path, tmp_path: Path) -> None:
    ids = []
    for texts in (["a", "b"], ["c", "d"]):
        data_store.use(None, [write(tmp_path / "n.jsonl", [{"text": text} for text in texts])], "text", root)
        ids.append([row["doc_id"] for row in document_set(root, "n")])
    assert ids[0] == ids[1] == ["n-000001", "n-000002"]


def test_the_other_side_stays_or_is_the_default(root: Path, tmp_path: Path) -> None:
    summary = data_store.use(None, [write(tmp_path / "a.jsonl", ROWS)], "text", root)
    assert any(note.startswith("corpus: none was given") for note in summary.notes)
    assert len(shards(root)) == 350
    kept = tree(root / "data/documents")
    summary = data_store.use(write(tmp_path / "c.jsonl", ROWS), [], "text", root)
    assert tree(root / "data/documents") == kept
    assert len(shards(root)) == 3
    assert not any("none" in note for note in summary.notes)
    assert (root / "calls").read_text().count('["add", "--quiet", "data"]') == 2


@pytest.mark.parametrize("samples", ["null", "0", "4"])
def test_it_says_how_many_of_new_texts_the_report_will_show(root: Path, tmp_path: Path, samples: str) -> None:
    """Only a number in params.yaml shows any, and it was perhaps written for other documents."""
    (root / "params.yaml").write_text(
        (Path(__file__).parents[2] / "params.yaml").read_text().replace("samples: null", f"samples: {samples}")
    )
    summary = data_store.use(None, [write(tmp_path / "a.jsonl", ROWS)], "text", root)
    assert any("report.samples of params.yaml is 4" in note for note in summary.notes) == (samples == "4")


def lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in objects)


GOOD = {"text": f"fine {SECRET}"}
# Every kind of file that is refused stands in tests/privatization/bad_inputs.py; these are read by the same code.
BOTH: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    # name: file, content, what the message must say
    "wrong column": ("f.jsonl", lines({"body": SECRET, "id": 1}), ("no column `text` among its 2", "text_column")),
    "no header": ("f.csv", b"Zanzibar is where I went, really far\nx,y\n", ("no column `text` among its 2",)),
    "an empty parquet file": ("f.parquet", b"", ("empty",)),
    "only a header": ("f.csv", b"text,label\n", ("empty",)),
    "a cut gzip": ("f.jsonl.gz", gzip.compress(lines(*[GOOD] * 50))[:-12], (".gz file", "truncated")),
    "a broken parquet file": ("f.parquet", parquet(ROWS)[:-5], ("not a Parquet file",)),
    "an array file": ("f.json", json.dumps([GOOD], indent=1).encode(), ("line 1", "array")),
    "a number for a text": ("f.jsonl", lines(GOOD, {"text": 5}), ("line 2", "`text`", "a number")),
    "not UTF-8 parquet": ("f.parquet", b"latin1", ("row 3", "not UTF-8")),
    "an unpaired surrogate": ("f.jsonl", lines(GOOD, {"text": f"{SECRET}\ud800"}), ("line 2", "surrogate")),
    "too few fields": ("f.csv", b'text,label\n"a\nb",1\nZanzibar\n', ("line 4", "1 fields")),
    "another ending": ("f.docx", b"PK", ("known are",)),
}
DOCUMENTS: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "a null text": ("f.jsonl", lines(GOOD, {"text": None, "label": 1}), ("line 2", "null")),
    "a null text in parquet": ("f.parquet", parquet([{"text": "a"}, {"text": None}]), ("row 2", "null")),
    "the same id twice": (
        "f.jsonl", lines(*({"doc_id": n, "text": SECRET} for n in (1, 2, 1))), ("line 1", "line 3", "same doc_id"),
    ),
    "no id in one row": ("f.csv", b"doc_id,text\n1,a\n,b\n", ("line 3", "doc_id")),
    "an id with a line break": ("f.jsonl", lines({"doc_id": "a\nb", "text": "x"}), ("line 1", "control character")),
    "a list for a label": ("f.jsonl", lines({"text": "a", "label": [SECRET]}), ("line 1", "`label`", "a list")),
    "a number for text_b": ("f.jsonl", lines({"text": "a", "text_b": 1}), ("line 1", "`text_b`", "a number")),
    "a NUL in an id": ("f.jsonl", lines({"doc_id": "a\0", "text": "x"}), ("line 1", "NUL")),
}  # fmt: skip
CORPUS: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "no text in any row": ("f.jsonl", lines({"text": None}, {"text": " "}), ("every row", "`text`")),
    "a list for a url": ("f.jsonl", lines({"text": "a", "url": [SECRET]}), ("line 1", "`url`", "a list")),
}


def cases() -> Iterator[Any]:
    for side, table in (("both", BOTH), ("documents", DOCUMENTS), ("corpus", CORPUS)):
        for case, (file, content, said) in table.items():
            for given in ("corpus", "documents") if side == "both" else (side,):
                yield pytest.param(given, file, content, said, id=f"{given}: {case}")


def latin1_parquet() -> bytes:
    """A Parquet file whose strings are not UTF-8, as careless writers make them."""
    texts = pa.array([b"ok", b"ok", b"Zanzibar \xe9"]).view(pa.string())
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": texts}), out)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(("given", "name", "content", "said"), cases())
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_touched(
    root: Path, tmp_path: Path, given: str, name: str, content: bytes, said: tuple[str, ...]
) -> None:
    write(root / "data/corpus/old.json.gz", ROWS)
    write(root / "data/documents/old.parquet", ROWS)
    (root / "data.dvc").write_text("old\n")
    before = tree(root)
    file = tmp_path / "in" / name
    file.parent.mkdir()
    file.write_bytes(latin1_parquet() if content == b"latin1" else content)
    write(tmp_path / "in/a.jsonl", ROWS)  # a sound neighbour does not save it
    with pytest.raises(RequestError) as error:
        if given == "corpus":
            data_store.use(tmp_path / "in", [], "text", root)
        else:
            data_store.use(None, [tmp_path / "in"], "text", root)
    message = str(error.value)
    assert error.value.exit_code == 2
    assert "\n" not in message
    assert SECRET not in message
    for part in (name, *said):
        assert part in message
    after = tree(root)
    after.pop("calls", None)
    assert after == before


def test_a_duplicate_id_across_files_names_both(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", [{"doc_id": "x", "text": "1"}, {"doc_id": "y", "text": "2"}])
    write(tmp_path / "in/b.parquet", [{"doc_id": "z", "text": "1"}, {"doc_id": "y", "text": "2"}])
    with pytest.raises(RequestError) as error:
        data_store.use(None, [tmp_path / "in"], "text", root)
    assert "a.csv, line 3 and " in str(error.value)
    assert "b.parquet, row 2 have the same doc_id" in str(error.value)


def test_data_that_dvc_has_not_saved_is_not_replaced(root: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", ROWS)
    kept = write(root / "data/corpus/mine.json.gz", ROWS)
    with pytest.raises(RequestError, match="dvc add data"):
        data_store.use(file, [], "text", root)
    with pytest.raises(RequestError, match="dvc add data"):
        data_store.use_default(root)
    assert kept.exists()


def test_when_dvc_fails_the_old_data_comes_back(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_store.use_default(root)
    (root / "data.dvc").write_text("old\n")
    before = tree(root / "data")
    answer = data_store._dvc

    def failing(root: Path, *arguments: str) -> Any:
        done = answer(root, *arguments)
        if arguments[0] == "add":
            done.returncode, done.stderr = 1, "ERROR: the lock is taken\n"
        return done

    monkeypatch.setattr(data_store, "_dvc", failing)
    with pytest.raises(LexveilError, match="the lock is taken"):
        data_store.use(write(tmp_path / "a.jsonl", ROWS), [], "text", root)
    assert tree(root / "data") == before
    assert (root / "data.dvc").read_text() == "old\n"
    assert list((root / ".lexveil").iterdir()) == []


@pytest.mark.parametrize("moment", ["while building", "between the renames", "before dvc add"])
def test_a_killed_use_can_be_repeated(root: Path, tmp_path: Path, moment: str) -> None:
    """What SIGKILL leaves behind at each moment, made by hand."""
    data_store.use_default(root)
    kept = tree(root / "data/documents")
    write(root / data_store.PARTIAL / "corpus/00000.partial", ROWS)
    if moment == "between the renames":
        (root / "data").rename(root / data_store.PREVIOUS)
    if moment == "before dvc add":
        (root / "data").rename(root / data_store.PREVIOUS)
        (root / data_store.PARTIAL).rename(root / "data")
        write(root / "data/documents/new.parquet", ROWS)
        kept = tree(root / "data/documents")
    data_store.use(write(tmp_path / "a.jsonl", ROWS), [], "text", root)
    assert len(shards(root)) == 3
    assert tree(root / "data/documents") == kept
    assert list((root / ".lexveil").iterdir()) == []


def test_files_that_are_kept_are_links_and_never_written(root: Path, tmp_path: Path) -> None:
    """DVC may have linked data/ to its cache, read-only: a write into such a file would damage the cache."""
    data_store.use_default(root)
    old = next((root / "data/documents").glob("reviews.parquet"))
    cache = tmp_path / "cache"
    cache.hardlink_to(old)
    cache.chmod(0o444)
    content = cache.read_bytes()
    data_store.use(write(tmp_path / "a.jsonl", ROWS), [], "text", root)
    assert old.stat().st_ino == cache.stat().st_ino
    data_store.use_default(root)
    assert cache.read_bytes() == content


def test_a_model_takes_the_place_of_a_corpus(
    root: Path, tmp_path: Path, packaged: PackagedModel, outside: Path
) -> None:
    text = (ROOT / "params.yaml").read_text(encoding="utf-8").replace("\n  base: en ", "\n  base: none ")
    (root / "params.yaml").write_text(text, encoding="utf-8")
    file = write(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(RequestError, match="model toy takes the place of a corpus"):
        data_store.use(file, [], "text", root, model="toy")
    with pytest.raises(RequestError, match="there is no model other"):
        data_store.use(None, [file], "text", root, model="other")
    assert not (root / "data").exists()
    summary = data_store.use(None, [file], "text", root, model="toy")
    assert summary.notes[0] == f"params.yaml: embeddings.base is now toy@{packaged.hash[:12]}"
    assert summary.corpus is None and shards(root) == []
    found = data_store.status(root).corpus
    assert found is not None and found.documents == 0
