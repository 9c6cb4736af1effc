"""A service names its model, and a run of the project changes nothing about the model meanwhile."""

import shutil

import pytest

from lexveil import Model
from lexveil.faces.service import server
from lexveil.io.artifacts import model as models
from lexveil.release.ledger.ledger import Ledger

CAPPED = ("--mechanism", "tem", "--strategy", "S1", "--epsilon", "1")


@pytest.fixture
def started(monkeypatch):
    """The terms of each service that would have been started."""
    terms = []
    monkeypatch.setattr(server, "serve", lambda given: terms.append(given) or 0)
    return terms


def test_a_service_keeps_the_model_it_began_with(
    built,
    packaged,
    started,
    cli,
    tmp_path,
    monkeypatch,
):
    """The workers of a service are told the model by name, because a worker may start after a later
    run of the project.
    """
    (tmp_path / "home/models").mkdir(parents=True)
    (tmp_path / "home/models/toy").symlink_to(packaged.folder)
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(models, "DEFAULT", "toy")
    embeddings = built / "artifacts/embeddings"
    aside = built / "aside"
    embeddings.rename(aside)
    said = cli("service", *CAPPED).err
    assert "using the model toy 1.0, made of " in said and "no run of this project" in said
    aside.rename(embeddings)
    assert Model.load(name=started[0].model).name == "toy"
    said = cli("service", *CAPPED).err
    assert "using the model own, made of " in said
    shutil.rmtree(embeddings)
    assert started[1].model == "own"


@pytest.mark.usefixtures("outside")
def test_a_service_says_its_model_also_where_one_is_named(started, cli):
    assert "using the model toy 1.0, made of " in cli("service", "--model", "toy", *CAPPED).err
    assert started[0].model == "toy"


@pytest.mark.parametrize(
    ("cap", "said"),
    [
        ((), "no cap yet: the first release sets it"),
        ((250.0,), "cap of a subject: 250 epsilon"),
        ((None,), "cap of a subject: unlimited"),
    ],
)
def test_a_service_says_which_ledger_it_charges(outside, started, cli, cap, said):
    home = outside.parent / "home"
    with Ledger.open(home / "ledger", anchor=home / "ledger-anchor.json") as ledger:
        for one in cap:
            ledger.set_cap(one, "of the test")
    shown = cli("service", "--model", "toy", *CAPPED).err
    assert f"charging the ledger {home / 'ledger/ledger.sqlite'}, {said}\n" in shown
