"""`import lexveil`: light, complete, and working from a folder that is no project."""

from pathlib import Path

import numpy as np
import pytest

import lexveil

TEXTS = ["The bank of the river was quiet.", "She told the doctor about the pain."]
HOW = {"mechanism": "madlib", "strategy": "S1"}


def test_every_name_is_there():
    assert sorted(lexveil.__all__) == dir(lexveil)
    assert (
        all(hasattr(lexveil, name) for name in lexveil.__all__) and "madlib" in lexveil.MECHANISMS
    )
    assert issubclass(lexveil.MissingArtifactError, lexveil.RequestError)
    with pytest.raises(AttributeError, match="no attribute 'privatise'"):
        _ = lexveil.privatise


def test_it_tells_how_far_it_is(built, capfd):
    """Texts as they are counted, then as they are rewritten; neither this nor what is returned
    shows a text."""
    steps = []
    texts = [*TEXTS, None] * 700
    how = HOW | {"epsilon": 2.0, "project": built, "seed": 1}
    done = lexveil.privatize(texts, progress=lambda *step: steps.append(step), **how)
    counted, rewritten = (
        [step for step in steps if (step[1] is None) == wanted] for wanted in (True, False)
    )
    assert (
        steps == counted + rewritten
        and counted[-1] == (2100, None)
        and rewritten[-1] == (2100, 2100)
    )
    assert [step[0] for step in rewritten] == sorted(step[0] for step in rewritten)
    assert repr(done) == "<Privatized list: madlib S1, experiment, no guarantee>"
    capfd.readouterr()
    assert lexveil.privatize(texts, progress=True, **how).values == done.values
    assert (
        "rewriting" in (said := capfd.readouterr().err) and "100%" in said and "river" not in said
    )
    assert lexveil.privatize(texts, quiet=True, **how).values == done.values
    assert capfd.readouterr() == ("", "")


def test_a_release_is_charged_to_the_ledger_of_the_project(project, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    how = HOW | {"document_budget": 5.0, "max_token_epsilon": 2.0}
    done = lexveil.privatize(TEXTS, **how, subjects=["ana", "ana"], project=project)
    # Of any text: 2, 2 and 1 nat a unit of distance, on its farthest words.
    assert done.measurement.bound(np.array([1.0, 3.0, 2.0])).nats == 2 * 3 + 2 * 2 + 1
    log = done.token_log.to_pandas().query("row == 1 and epsilon > 0")["epsilon"].to_numpy()
    assert done.measurement.bound(np.full(len(log), 3.0), log).nats == 3 * log.sum() > 0
    assert done.measurement.guarantee().formula == done.record.guarantee.formula != "none"
    lexveil.Ledger.open(project / ".lexveil/ledger", None, make=False).close()
    assert list(Path.cwd().iterdir()) == []


def test_a_wrong_folder_argument_or_kind_says_what_to_do(tmp_path):
    for wrong, says in (
        ({"project": tmp_path}, r"params\.yaml"),
        ({"columns": []}, r"columns; did you mean column\?"),
    ):
        with pytest.raises(lexveil.RequestError, match=says):
            lexveil.privatize(TEXTS, **HOW, **wrong, epsilon=1.0)
    with pytest.raises(
        lexveil.RequestError, match=r"source: is a list; give the path of a file or folder"
    ):
        lexveil.inspect(TEXTS)
