"""`lexveil release`: its lines, its exit codes, what DVC then has, and what is published of two
sources."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from dvc.repo import Repo
from toy_inbox import SECRET, WORDS, files

from lexveil.faces.cli import main
from lexveil.io.artifacts.model import Model
from lexveil.release.inbox.run import release_inbox
from tests.same_noise import Clock, SameAnswers, published, sources
from tests.shared_trees import stand_beside
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tracked(inbox):
    """The project as a DVC project in git."""
    (inbox.root / "dvc.yaml").write_text("stages: {}\n")
    shutil.copy(ROOT / ".gitignore", inbox.root)
    shutil.copytree(
        ROOT / ".dvc", inbox.root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp")
    )
    subprocess.run(["git", "init", "-q"], cwd=inbox.root, check=True)
    return inbox


def is_clean():
    """Return whether DVC has everything that it tracks."""
    with Repo() as repo:
        return repo.status() == {}


@pytest.fixture
def published_once(tracked):
    """A release of two documents."""
    tracked.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    assert main.main(["release"]) == 0
    return tracked


def test_a_dry_run_publishes_nothing(tracked):
    tracked.put("a.jsonl", ("1", WORDS))
    assert main.main(["release", "--dry-run"]) == 0
    assert not tracked.archive.exists()


def test_the_report_of_a_release_is_json_on_request(tracked, capsys):
    tracked.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    assert main.main(["release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["released"] == 2


def test_what_is_published_is_tracked(published_once):
    (release,) = published_once.releases()
    pointers = {path.name for path in published_once.archive.glob("*.dvc")}
    assert pointers == {f"{release.name}.dvc", "current.parquet.dvc", "index.parquet.dvc"}
    assert not (published_once.archive / ".gitignore").exists()
    assert is_clean()


def test_a_withdrawal_changes_the_pointer_of_the_release_and_no_other(
    published_once,
):
    """DVC is told by the next run if the one that took a document out was killed before."""
    (release,) = published_once.releases()
    pointer = published_once.archive / f"{release.name}.dvc"
    before = pointer.read_text()
    (published_once.folder / "withdrawn.txt").write_text("2\n")
    published_once.run()
    assert not is_clean()
    assert main.main(["release"]) == 0
    assert is_clean()
    assert pointer.read_text() != before
    # the operator remembers it
    assert not (published_once.archive / "withdrawn.parquet.dvc").exists()


def test_a_release_that_is_lost_comes_back_and_is_not_paid_for_again(published_once, capsys):
    (release,) = published_once.releases()
    shutil.rmtree(release)
    assert main.main(["release"]) == 2
    lost = f"releases/{release.name}.dvc"
    assert f"dvc checkout {lost}" in capsys.readouterr().err
    with Repo() as repo:
        repo.checkout([lost])
    assert main.main(["release"]) == 0
    assert published_once.states() == ["committed"]


def test_words_and_names_of_a_source_are_nowhere_else(tracked, capsys, caplog):
    """Served, stopped by the gate, and refused: in no log, archive, cache, ledger, page or memory
    of the operator."""
    ident = "quetzalonia"
    whom = "xylopharra"
    caplog.set_level("DEBUG")
    tracked.configure(subject_column="who", cap=50.0, ids="pseudonym")
    rows = [{"id": f"{ident}{n}", "who": whom, "text": f"{WORDS} {SECRET}"} for n in range(2)]
    tracked.put("a.jsonl", *rows)
    assert main.main(["release"]) == 0
    tracked.put("b.jsonl", {**rows[0], "id": f"{ident}9", "who": f"{whom}9"})
    tracked.configure(gate={"min_coverage": 1.0})
    assert main.main(["release"]) == 1
    tracked.put("c.jsonl", {**rows[0], "text": f"{SECRET} again"})
    assert main.main(["release"]) == 2
    (tracked.folder / "c.jsonl").write_text(
        f'{{"id": "{ident}", "who": "{whom}", "text": {{"{SECRET}": 1}}}}'
    )
    assert main.main(["release"]) == 2
    kept = [tracked.root / name for name in (".dvc", ".lexveil", "releases", "artifacts/data_docs")]
    found = {str(file): file.read_bytes() for folder in kept for file in files(folder)}
    assert {name.split("/")[-1] for name in found} > {
        "documents.parquet",
        "ids.parquet",
        "ledger.sqlite",
    }
    assert any("/.dvc/cache/" in name for name in found)
    tables = {f"rows of {name}": name for name in found if name.endswith(".parquet")}
    rows_of = {
        where: repr(pq.read_table(name).to_pylist()).encode() for where, name in tables.items()
    }
    said = {"said": repr(capsys.readouterr()).encode(), "logs": caplog.text.encode()}
    for where, content in (found | rows_of | said).items():
        for word in (SECRET, ident, whom):
            is_listed = word == whom and where.endswith("withheld.csv")  # the operator's
            assert is_listed or word.encode() not in content.lower(), f"{word} is in {where}"


pytestmark = pytest.mark.slow


def archived(texts, project):
    """Three releases: new documents, one of them changed, and a document withdrawn."""
    inbox = project / "inbox"
    inbox.mkdir()
    gate = {"min_coverage": 0.0, "max_unprotected": 1.0, "max_length_ratio": None, "pii": True}
    asked = {
        "source": "inbox",
        "document_budget": 5.0,
        "gate": gate,
        "ids": "pseudonym",
        "strategy": "S3",
    }
    policy = {"stopwords": "perturb", "punctuation": "drop", "oov": "sample"}
    change_params(inbox=asked | {"subject_column": "who"}, policy=policy)

    def put(*rows):
        documents = [
            {"id": number, "who": number % 2, "text": texts[row]} for number, row in enumerate(rows)
        ]
        (inbox / "in.jsonl").write_text(
            "".join(json.dumps(document) + "\n" for document in documents)
        )
        release_inbox()

    put(0, 1, 2, 3, 4, 6)
    put(0, 1, 2, 3, 4, 6, 7)
    put(0, 1, 2, 3, 7, 6, 4)
    (inbox / "withdrawn.txt").write_text("1\n")
    release_inbox()
    return published(project / "releases")


def test_an_archive_shows_of_its_sources_only_what_is_disclosed(listed, tmp_path, monkeypatch):
    same = SameAnswers(monkeypatch)
    for module in ("release.inbox.run", "release.checks.validation"):
        monkeypatch.setattr(f"lexveil.{module}.datetime", Clock)
    made = []
    for number, texts in enumerate(sources(Model.load(listed))):
        project = stand_beside(listed, tmp_path / str(number) / "project", monkeypatch)
        same.restart()
        made.append(archived(texts, project))
    first, second = made
    assert first["names"].count(b"documents.parquet.record.json") == 3
    assert [name for name in first | second if first.get(name) != second.get(name)] == []
