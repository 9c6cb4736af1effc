"""`lexveil data use`: what comes in, what is refused, that what was there stays there; and the
embedded default."""

import gzip
import hashlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from intake_files import json_lines, parquet, tree, write

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime import dvc_graph
from lexveil.io.formats.values import plain_value
from lexveil.lab.data import corpus, data_store, default, documents
from lexveil.lab.lineage.file_hashes import digest, file_md5
from tests.shared_trees import share

ROOT = Path(__file__).parents[2]
SECRET = "Zanzibar"  # stands in every text, and must stand in no message
TEXTS = [f"One {SECRET}.", f'She said "{SECRET}", twice.', f"Drei Wörter, {SECRET} – ✓."]
ROWS = [{"text": text} for text in TEXTS]


def shards(root):
    """Every object of the project's corpus."""
    files = sorted((root / "data/corpus").iterdir())
    names = [f"corpus-train.{n:05d}-of-{len(files):05d}.json.gz" for n in range(len(files))]
    assert [file.name for file in files] == names
    return [json.loads(line) for file in files for line in gzip.open(file, "rb")]


def document_set(root, name):
    table = pq.read_table(root / f"data/documents/{name}.parquet")
    assert table.schema.equals(documents.SCHEMA)
    return table.to_pylist()


@pytest.mark.parametrize("ending", "json json.gz jsonl ndjson csv csv.gz tsv parquet txt".split())
def test_every_form_gives_the_same_documents_and_corpus(root, tmp_path, ending):
    file = write(tmp_path / f"set.{ending}", ROWS)
    data_store.use(data_store.DataRequest(file, [file]), root)
    assert shards(root) == [{"text": text, "timestamp": None, "url": None} for text in TEXTS]
    empty = {"split": "all", "text_b": None, "label": None, "attribute": None}
    rows = [
        {"doc_id": f"set-{number:06d}", "text": text} | empty
        for number, text in enumerate(TEXTS, 1)
    ]
    assert document_set(root, "set") == rows


def test_how_a_file_is_read_is_said_where_its_name_does_not(root, tmp_path, capsys):
    file = tmp_path / "set.csv"
    file.write_bytes(f"text;label\n{SECRET} here;1\n".encode("utf-16"))
    data_store.use(data_store.DataRequest(file, [file]), root)
    said = [line for line in capsys.readouterr().err.splitlines() if "read" in line]
    assert said == [f"{file}: read with a semicolon between fields and as UTF-16"] * 2
    assert document_set(root, "set")[0]["label"] == "1"


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_users_ids_labels_and_splits_are_kept(root, tmp_path, ending):
    rows = [
        {
            "doc_id": 7,
            "text": "a",
            "text_b": "b",
            "split": "dev",
            "label": 1,
            "attribute": "f",
            "stars": 5,
        },
        {
            "doc_id": 3,
            "text": "c",
            "text_b": None,
            "split": None,
            "label": None,
            "attribute": "m",
            "stars": 1,
        },
    ]
    summary = data_store.use(
        data_store.DataRequest(None, [write(tmp_path / f"x.{ending}", rows)]), root
    )
    assert document_set(root, "x") == [
        {"doc_id": "7", "split": "dev", "text": "a", "text_b": "b", "label": "1", "attribute": "f"},
        {
            "doc_id": "3",
            "split": "all",
            "text": "c",
            "text_b": None,
            "label": None,
            "attribute": "m",
        },
    ]
    assert "documents/x: columns dropped: `stars`" in summary.notes
    summary = data_store.use(
        data_store.DataRequest(
            None, [write(tmp_path / f"y.{ending}", [{"text": "a", "label": 1}])]
        ),
        root,
    )
    assert any(
        "documents/y: utility and attack are not evaluated" in note for note in summary.notes
    )


def test_labels_become_strings_without_a_trace_of_their_type():
    values = [1, 1.0, 0.5, True, None, float("nan"), "", "1.0", "pos", 10**20, float("inf")]
    said = [plain_value(value, "label", "here") for value in values]
    assert said == [
        "1",
        "1",
        "0.5",
        "true",
        None,
        None,
        None,
        "1.0",
        "pos",
        "100000000000000000000",
        "inf",
    ]


def test_another_text_column(root, tmp_path):
    rows = [
        {"review": "good", "text": SECRET, "url": "http://x", "timestamp": "2001-01-01T00:00:00Z"}
    ]
    file = write(tmp_path / "r.jsonl", rows)
    data_store.use(data_store.DataRequest(file, [file], "review"), root)
    assert shards(root) == [
        {"text": "good", "timestamp": "2001-01-01T00:00:00Z", "url": "http://x"}
    ]
    assert [row["text"] for row in document_set(root, "r")] == ["good"]


def test_blank_rows_of_a_corpus_are_skipped_and_counted(root, tmp_path):
    rows = [
        {"text": "a"},
        {"text": None},
        {"text": ""},
        {"text": " \t"},
        {"other": 1},
        {"text": "b"},
    ]
    summary = data_store.use(data_store.DataRequest(write(tmp_path / "c.jsonl", rows)), root)
    assert [row["text"] for row in shards(root)] == ["a", "b"] and summary.corpus.skipped_blank == 4
    assert "corpus: 4 rows without text were skipped" in summary.notes


def test_a_corpus_is_cut_into_shards_and_the_same_bytes_come_twice(root, tmp_path, monkeypatch):
    rows = [{"text": f"{n} " + "x" * 200} for n in range(500)]
    for part in range(3):
        write(tmp_path / f"in/{part}.json.gz", rows[part::3])
    monkeypatch.setattr(corpus, "write_shards", partial(corpus.write_shards, shard_bytes=20_000))
    trees = []
    for _ in range(2):
        assert (
            data_store.use(data_store.DataRequest(tmp_path / "in"), root).corpus.shards == 7
        )  # 130 kB
        trees.append(tree(root / "data/corpus"))
    assert trees[0] == trees[1]
    assert [one["text"] for one in shards(root)] == [
        row["text"] for part in range(3) for row in rows[part::3]
    ]


def test_the_other_side_stays_or_is_the_default(root, tmp_path):
    summary = data_store.use(
        data_store.DataRequest(None, [write(tmp_path / "a.jsonl", ROWS)]), root
    )
    assert any(note.startswith("corpus: the request and data/ have none") for note in summary.notes)
    assert len(shards(root)) == 350
    kept = tree(root / "data/documents")
    summary = data_store.use(data_store.DataRequest(write(tmp_path / "c.jsonl", ROWS)), root)
    assert tree(root / "data/documents") == kept
    assert len(shards(root)) == 3
    assert not any("have none" in note for note in summary.notes)
    assert (root / "tracked").read_text() == "data\ndata\n"


@pytest.mark.parametrize("samples", ["null", "0", "4"])
def test_it_says_how_many_of_new_texts_the_report_will_show(root, tmp_path, samples):
    """The report shows texts only if params.yaml has a number, which may have been chosen for other
    documents.
    """
    params = (ROOT / "params.yaml").read_text(encoding="utf-8")
    (root / "params.yaml").write_text(
        params.replace("samples: null", f"samples: {samples}"), encoding="utf-8"
    )
    summary = data_store.use(
        data_store.DataRequest(None, [write(tmp_path / "a.jsonl", ROWS)]), root
    )
    assert any("report.samples of params.yaml is 4" in note for note in summary.notes) == (
        samples == "4"
    )


GOOD = {"text": f"fine {SECRET}"}
# Every kind of file that is refused stands in tests/privatization/bad_inputs.py; these are read by
# the same code.
REFUSED = [
    (
        "corpus",
        "f.jsonl",
        json_lines([{"body": SECRET, "id": 1}]),
        ("no column `text` among its 2", "text_column"),
    ),
    ("corpus", "f.jsonl", json_lines([{"text": None}, {"text": " "}]), ("every row", "`text`")),
    (
        "corpus",
        "f.jsonl",
        json_lines([{"text": "a", "url": [SECRET]}]),
        ("line 1", "`url`", "a list"),
    ),
    (
        "documents",
        "f.jsonl",
        json_lines([{"body": SECRET, "id": 1}]),
        ("no column `text` among its 2", "text_column"),
    ),
    ("documents", "f.jsonl", json_lines([GOOD, {"text": None, "label": 1}]), ("line 2", "null")),
    ("documents", "f.parquet", parquet([{"text": "a"}, {"text": None}]), ("row 2", "null")),
    ("documents", "f.csv", b"doc_id,text\n1,a\n,b\n", ("line 3", "doc_id")),
    (
        "documents",
        "f.jsonl",
        json_lines([{"doc_id": "a\nb", "text": "x"}]),
        ("line 1", "control character"),
    ),
    ("documents", "f.jsonl", json_lines([{"doc_id": "a\0", "text": "x"}]), ("line 1", "NUL")),
    (
        "documents",
        "f.jsonl",
        json_lines([{"text": "a", "label": [SECRET]}]),
        ("line 1", "`label`", "a list"),
    ),
    (
        "documents",
        "f.jsonl",
        json_lines([{"text": "a", "text_b": 1}]),
        ("line 1", "`text_b`", "a number"),
    ),
]


@pytest.mark.parametrize(("given", "name", "content", "said"), REFUSED)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_touched(
    root, tmp_path, given, name, content, said
):
    write(root / "data/corpus/old.json.gz", ROWS)
    write(root / "data/documents/old.parquet", ROWS)
    (root / "data.dvc").write_text("old\n")
    before = tree(root)
    write(tmp_path / "in/a.jsonl", ROWS)  # a sound neighbour does not save it
    (tmp_path / "in" / name).write_bytes(content)
    corpus, sets = (tmp_path / "in", []) if given == "corpus" else (None, [tmp_path / "in"])
    with pytest.raises(RequestError) as error:
        data_store.use(data_store.DataRequest(corpus, sets), root)
    message = str(error.value)
    assert error.value.exit_code == 2 and "\n" not in message and SECRET not in message
    assert all(part in message for part in (name, *said))
    assert tree(root) == before


def test_a_duplicate_id_across_files_names_both(root, tmp_path):
    write(tmp_path / "in/a.csv", [{"doc_id": "x", "text": "1"}, {"doc_id": "y", "text": "2"}])
    write(tmp_path / "in/b.parquet", [{"doc_id": "z", "text": "1"}, {"doc_id": "y", "text": "2"}])
    with pytest.raises(
        RequestError, match=r"a\.csv, line 3 and .*b\.parquet, row 2 have the same doc_id"
    ):
        data_store.use(data_store.DataRequest(None, [tmp_path / "in"]), root)


def test_data_that_dvc_has_not_saved_is_not_replaced(root, tmp_path):
    file = write(tmp_path / "a.jsonl", ROWS)
    kept = write(root / "data/corpus/mine.json.gz", ROWS)
    for replace in (partial(data_store.use, data_store.DataRequest(file)), data_store.use_default):
        with pytest.raises(RequestError, match="dvc add data"):
            replace(root)
    assert kept.exists()


def test_when_dvc_fails_the_old_data_comes_back(root, tmp_path, monkeypatch):
    data_store.use_default(root)
    (root / "data.dvc").write_text("old\n")
    before = tree(root / "data")

    def failing(root, paths):
        raise LexveilError("`dvc add` failed: the lock is taken")

    monkeypatch.setattr(dvc_graph, "track", failing)
    with pytest.raises(LexveilError, match="the lock is taken"):
        data_store.use(data_store.DataRequest(write(tmp_path / "a.jsonl", ROWS)), root)
    assert tree(root / "data") == before
    assert (root / "data.dvc").read_text() == "old\n"
    assert list((root / ".lexveil").iterdir()) == []


@pytest.mark.parametrize("moment", ["while building", "between the renames", "before dvc add"])
def test_a_killed_use_can_be_repeated(root, tmp_path, moment):
    """The test creates by hand the files that SIGKILL leaves behind at each moment."""
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
    data_store.use(data_store.DataRequest(write(tmp_path / "a.jsonl", ROWS)), root)
    assert len(shards(root)) == 3
    assert tree(root / "data/documents") == kept
    assert list((root / ".lexveil").iterdir()) == []


def test_files_that_are_kept_are_links_and_never_written(root, tmp_path):
    """DVC may have linked data/ to its cache, read-only: a write into such a file would damage the
    cache."""
    data_store.use_default(root)
    old = next((root / "data/documents").glob("drug_reviews.parquet"))
    cache = tmp_path / "cache"
    cache.hardlink_to(old)
    cache.chmod(0o444)
    content = cache.read_bytes()
    data_store.use(data_store.DataRequest(write(tmp_path / "a.jsonl", ROWS)), root)
    assert old.stat().st_ino == cache.stat().st_ino
    data_store.use_default(root)
    assert cache.read_bytes() == content


def test_a_model_takes_the_place_of_a_corpus(root, tmp_path, packaged, outside):
    text = (
        (ROOT / "params.yaml")
        .read_text(encoding="utf-8")
        .replace("\n  base: en ", "\n  base: none ")
    )
    (root / "params.yaml").write_text(text, encoding="utf-8")
    file = write(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(RequestError, match="model toy replaces"):
        data_store.use(data_store.DataRequest(file, model="toy"), root)
    with pytest.raises(RequestError, match="there is no model other"):
        data_store.use(data_store.DataRequest(None, [file], model="other"), root)
    assert not (root / "data").exists()
    summary = data_store.use(data_store.DataRequest(None, [file], model="toy"), root)
    assert summary.notes[0] == f"params.yaml: embeddings.base is now toy@{packaged.hash[:12]}"
    assert summary.corpus is None and shards(root) == []
    found = data_store.status(root).corpus
    assert found is not None and found.documents == 0


# A change here changes the committed data.dvc and every number made from the default data: on
# purpose only.
MD5 = {
    "corpus/corpus-train.00000-of-00001.json.gz": "831708906e34fedeedff5f7b4eee3faf",
    "documents/drug_reviews.parquet": "aa64ac53152488fe52da207302af9c4a",
}
SMALL_MD5 = {
    "pang_lee.parquet": "02cc210ea9f24a2425c5deda839d26e1",
    "reviews.parquet": "7b624e662257dbc2643f6437694eb45c",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The default data."""
    root = tmp_path_factory.mktemp("default")
    data_store.materialize_default(root)
    share(root)
    return root / "data"


def test_the_bytes_are_the_committed_ones(made):
    assert {name: hashlib.md5(content).hexdigest() for name, content in tree(made).items()} == MD5


def test_twice_the_same_in_another_folder_and_process(made, tmp_path):
    """Another process has another hash seed: no order of a set may have a say. Importing gensim
    takes seconds."""
    code = (
        "import pathlib, sys, lexveil.lab.data.data_store as p; "
        f"p.materialize_default(pathlib.Path({str(tmp_path)!r}))"
    )
    code += "; assert 'gensim' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, env={"PYTHONHASHSEED": "12345"}
    )
    assert tree(tmp_path / "data") == tree(made)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lexveil", "data"]


def test_without_the_package_of_reviews_the_documents_are_the_smaller_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(default, "DRUG_PACKAGE", "a-package-that-is-not-there")
    assert not default.has_drug_reviews()
    default.write_default_documents(tmp_path / "documents")
    files = {file.name: file.read_bytes() for file in (tmp_path / "documents").iterdir()}
    assert {name: hashlib.md5(content).hexdigest() for name, content in files.items()} == SMALL_MD5


def test_reviews_of_medicines_have_labels_conditions_and_plain_text(made):
    """979 reviews, as the package says; ratings in the middle have no label."""
    rows = pq.read_table(made / "documents/drug_reviews.parquet").to_pylist()
    assert len(rows) == 979
    assert {row["label"] for row in rows} == {"positive", "negative", None}
    assert len({row["attribute"] for row in rows} - {None}) == default.CONDITIONS
    assert not any("&#039;" in row["text"] or row["text"].startswith('"') for row in rows)


def test_altered_reviews_are_refused(tmp_path):
    (tmp_path / "drugsCom.zip").write_bytes(b"another file")
    with pytest.raises(RequestError, match=r"drugsCom\.zip: differs from the file from which"):
        default.drug_reviews(tmp_path / "drugsCom.zip")


def test_data_dvc_names_the_default(made):
    files = {
        file.relative_to(made).as_posix(): file_md5(file)
        for file in made.rglob("*")
        if file.is_file()
    }
    assert digest(files) == default.DEFAULT_MD5
    assert default.DEFAULT_MD5 in (ROOT / "data.dvc").read_text(encoding="utf-8")


def test_altered_test_data_is_refused(monkeypatch):
    monkeypatch.setitem(default.TEST_DATA, "lee.cor", "0" * 64)
    with pytest.raises(RequestError, match=r"lee\.cor"):
        default.articles()


def test_a_document_set_has_the_name_that_is_given(root, tmp_path, monkeypatch, cli):
    """Beside those that are named by their files; a file whose own name has = is one of them."""
    files = [write(tmp_path / name, ROWS) for name in ("a.csv", "b.csv", "c=d.csv")]
    monkeypatch.chdir(root)
    asked = [f"tickets={files[0]}", str(files[1]), str(files[2])]
    cli("data", "use", "--documents", *asked)
    made = {file.stem for file in (root / "data/documents").glob("*.parquet")}
    assert made == {"tickets", "b", "c-d"}
    assert document_set(root, "tickets")[0]["doc_id"] == "tickets-000001"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["B=a.csv", "b.csv"], "would both become b; name one of them by --documents NAME="),
        (["x=a.csv", "x=b.csv"], "the name x is repeated"),
        (["x y=a.csv"], "the name of a document set consists of letters"),
        (["x=folder"], "each file of a folder becomes its own document set"),
        (["x=none.csv"], "none.csv"),
    ],
)
def test_names_that_are_refused_leave_the_data_alone(root, monkeypatch, cli, asked, said):
    monkeypatch.chdir(root)
    for name in ("a.csv", "b.csv", "folder/c.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        write(Path(name), ROWS)
    before = tree(root / "data")
    assert said in cli("data", "use", "--documents", *asked, code=2, told=r"(?:.*\n)*").err
    assert tree(root / "data") == before
