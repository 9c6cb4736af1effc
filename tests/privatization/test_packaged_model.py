"""Texts are rewritten with a packaged model, in no project: by files, streams and values, and all
that follows."""

import json
import re
import stat

import pytest

import lexveil
from lexveil import MECHANISMS, Ledger, Model
from lexveil.base import paths
from lexveil.io.artifacts import model as models

TEXT = "The prime minister said in New South Wales that the fire was under control."
HOW = {"mechanism": "tem", "strategy": "S3", "epsilon": 10.0}
OPTIONS = ("--mechanism", "tem", "--strategy", "S3", "--epsilon", "10")


@pytest.fixture
def home(outside):
    """The user's data folder."""
    return paths.user_data()


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("mechanism", "strategy"), [("tem", "S1"), ("madlib", "S3"), ("diffractor_geometric", "S2")]
)
def test_the_record_names_the_model_and_its_files(packaged, mechanism, strategy):
    how = {
        "mechanism": mechanism,
        "strategy": strategy,
        "document_budget": 300.0,
        "seed": 1,
        "model": "toy",
    }
    done = lexveil.privatize([TEXT], **how)
    record = done.record
    assert done.values[0] and done.values == lexveil.privatize([TEXT], **how).values
    assert record.model is not None
    assert (record.model.name, record.model.version, record.model.sha256) == (
        "toy",
        "1.0",
        packaged.hash,
    )
    files = {f"models/toy/{name}": hashed for name, hashed in packaged.card.files.items()}
    assert record.made_with.items() <= files.items()
    assert ("models/toy/pmi.npy" in record.made_with) == (strategy != "S1")
    with_orders = any("orders" in name for name in record.made_with)
    assert with_orders == MECHANISMS[mechanism].may_lack_words


def test_a_file_in_no_project(outside, home, cli):
    """A newcomer needs one command; the ledger is the user's, private, and its path is printed."""
    (outside / "in.csv").write_text(f"id,text\n1,{TEXT}\n")
    said = cli("privatize", "in.csv", "-o", "out.csv", "--model", "toy", *OPTIONS)
    assert f"so the ledger is your own, {home / 'ledger'}" in said.err
    assert "mode release, model toy 1.0" in said.out
    record = json.loads((outside / "out.csv.record.json").read_text())
    assert record["schema"] == 5 and record["model"]["name"] == "toy"
    assert f"model toy 1.0, made of {record['model']['made_of']}" in said.out
    assert json.loads((outside / "out.csv.operator.json").read_text())["model"] == record["model"]
    assert {entry.name for entry in outside.iterdir()} == {
        "in.csv",
        *(
            f"out.csv{ending}"
            for ending in (
                "",
                ".record.json",
                ".statement.txt",
                ".operator.json",
                ".tokens.parquet",
            )
        ),
    }
    for path in (home / "ledger", *(home / "ledger").iterdir(), home / "ledger-anchor.json"):
        private = stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        assert private or path.name == ".gitignore", path


@pytest.fixture
def beside_own(built, packaged, tmp_path, monkeypatch):
    """A project that has run, with toy as the model that ships; the user has no ledger yet."""
    # other tests write into the one that all share
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(paths, "MODELS", packaged.folder.parent)
    monkeypatch.setattr(models, "DEFAULT", "toy")
    return built


def test_a_project_that_has_run_has_its_own_model(beside_own, monkeypatch):
    """Folders below the project are in it."""
    (beside_own / "below").mkdir()
    monkeypatch.chdir(beside_own / "below")
    model = Model.load()
    assert (model.name, model.project.folder) == ("own", beside_own)


@pytest.mark.usefixtures("beside_own")
def test_a_projects_own_model_says_what_it_was_made_of(capsys):
    own = Model.load().reference("S1")
    said = capsys.readouterr().err
    assert said.startswith("using the model own, made of ")
    assert "a run of this project" in said
    assert re.search(r"[1-9][\d,]* documents of this project's corpus", said)
    assert own.made_of
    assert own.made_of in said


@pytest.mark.usefixtures("beside_own")
def test_a_projects_own_model_has_a_hash_by_strategy_and_no_version():
    first, second = (Model.load().reference(strategy) for strategy in ("S1", "S3"))
    assert (first.name, first.version) == ("own", None)
    assert first.sha256 != second.sha256


def test_another_model_in_a_project_pays_from_the_projects_ledger(beside_own):
    record = lexveil.privatize([TEXT], **HOW, model="toy").record
    assert record.model.name == "toy"
    assert (beside_own / ".lexveil/ledger").is_dir()
    assert not (paths.user_data() / "ledger").exists()


def test_a_project_that_has_not_run_has_the_model_that_ships(beside_own, capsys):
    (beside_own / "artifacts/embeddings").rename(beside_own / "artifacts/elsewhere")
    assert Model.load().name == "toy"
    assert "no run of this project" in capsys.readouterr().err


@pytest.mark.usefixtures("outside")
def test_a_subject_s_budget_is_kept_over_folders(home, tmp_path, monkeypatch):
    """The ledger is the user's, wherever the current folder is, and its cap holds as in a
    project."""
    how = {
        "mechanism": "madlib",
        "strategy": "S3",  # which spends all of a budget
        "document_budget": 5.0,
        "max_token_epsilon": 5.0,
        "model": "toy",
    }
    values = [lexveil.privatize([TEXT], subjects=["anna"], **how).values]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    values += [lexveil.privatize([TEXT] * 10, subjects=["anna"] * 10, **how).values]
    # ten times the first budget is the cap
    assert values[0] != [None] and values[1].count(None) == 1
    with Ledger.open(home / "ledger", None, anchor=home / "ledger-anchor.json") as ledger:
        assert ledger.cap() == 50.0
