"""The comparison of models runs on toys, draws both classes evenly, and finds the ε it looks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import models
from lexveil.artifacts.model import Model
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.runtime.tables import read_json

pytestmark = pytest.mark.slow

TICKETS = Path(__file__).parents[2] / "examples" / "tickets.csv"


@pytest.fixture
def data(outside: Path, packaged: PackagedModel) -> Path:
    """Texts of the toy's words: of two classes that their words tell apart, the second rarer."""
    words = [token for token in packaged.tokens if "_" not in token and token.isalpha()][:200]
    rng = np.random.default_rng(5)
    classes = [None if row % 7 == 0 else int(row % 3 == 0) for row in range(160)]
    texts = [" ".join(rng.choice(words[100 * (one or 0) :][:100], 12)) for one in classes]
    split = ["dev" if row % 4 == 0 else "train" for row in range(160)]
    columns = {"text": texts, "split": split, "label": classes, "weak_sentiment": classes, "attribute": classes}
    for name in ("sst2", "trustpilot"):
        pq.write_table(pa.table(columns), outside / f"{name}.parquet")
    return outside


def test_the_tables(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name, problem = next(iter(models.PROBLEMS.items()))
    monkeypatch.setattr(models, "PROBLEMS", {name: problem})
    given = ["--model", "toy", "--data", str(data), "--epsilon", "4", "--unchanged", "0.5", "--strategy", "S1"]
    models.main([*given, "--json", "figures.json", "--tickets", str(TICKETS)])
    said = capsys.readouterr().out
    assert "1. Hello, I was charged twice" in said and said.count("**toy**") == 5
    clean, shared, equal = read_json(data / "figures.json", "benchmarks.models")[name]
    assert clean["accuracy"] > 0.9 and clean["unchanged"] == 1
    assert equal["epsilon"] == 4 and 0 < equal["unchanged"] < 1 and 0.9 < equal["coverage"] <= 1
    assert shared["unchanged"] == pytest.approx(0.5, abs=0.1)


def test_classes_are_even_and_parts_are_apart(data: Path) -> None:
    for problem in models.drawn(data, 1000, 1000):
        for part in (problem.is_train, ~problem.is_train):
            classes = np.array(problem.classes)[part]
            assert (classes == "0").sum() == (classes == "1").sum() > 5
        assert len(set(problem.texts)) == len(problem.texts)
    assert [len(problem.texts) for problem in models.drawn(data, 10, 4)] == [14, 14, 14]


def test_a_share_that_no_epsilon_reaches(data: Path) -> None:
    """Of unknown words alone none stays as it was."""
    problem = models.Texts("unknown", ["zzyzx qwrtz"] * 4, ["0", "1"] * 2, np.array([True, True, False, False]))
    model = Model.load(name="toy")
    assert models.coverage(model, problem.texts) == 0
    assert models.epsilon_for(model, problem, "S1", 0.2) is None
