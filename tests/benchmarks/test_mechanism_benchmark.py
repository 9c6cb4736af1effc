"""What is compared with does the same as what is compared, and the benchmark runs."""

import json
import sys

import numpy as np
import pytest

from benchmarks import limits, material, mechanisms, per_word
from lexveil.mechanisms.registry import build_mechanism
from tests.mechanisms.toys import fits, vectors

pytestmark = pytest.mark.slow

DRAWS = 4_000  # of the per-word form; a law that is drawn too is known from 25 times as many


def drawn_per_word(replace: per_word.PerWord, word: int, epsilon: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.array([replace(word, epsilon, rng) for _ in range(DRAWS)])


@pytest.mark.parametrize(("name", "epsilon"), [("tem", 3.0), ("diffractor_geometric", 0.7), ("diffractor_tem", 0.7)])
@pytest.mark.parametrize(("error", "follows"), [(1.0, True), (0.7, False)])
def test_the_per_word_form_follows_the_closed_form(name: str, epsilon: float, error: float, follows: bool) -> None:
    some, order = vectors(), np.random.default_rng(1).permutation(12).astype(np.int32)
    mechanism = build_mechanism(name, some, orders=order[None])
    law = np.exp(mechanism.log_pmf(np.array([3]), np.array([epsilon * error])))[0]
    plain = per_word.build(name, order if name.startswith("diffractor") else some)
    assert fits(drawn_per_word(plain, 3, epsilon), law) == follows


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figure is looked at: an instant is long enough for what a benchmark watches for half a second."""
    best_rate, run_per_word = limits.best_rate, mechanisms.run_per_word
    monkeypatch.setattr(limits, "best_rate", lambda work, seconds=0.0: best_rate(work, 0.01))
    monkeypatch.setattr(mechanisms, "run_per_word", lambda *given: run_per_word(*given[:3], 0.01))


@pytest.mark.parametrize("name", ["madlib", "diffractor_tem", "rank_remap"])
def test_every_mechanism_is_measured(name: str, tmp_path, capsys, monkeypatch, instant) -> None:
    some = material.made_vectors(300, 8)
    files = {"vectors": str(tmp_path / "vectors.npy"), "ids": str(tmp_path / "ids.npy")}
    np.save(files["vectors"], some)
    np.save(files["ids"], material.zipf_tokens(2_000, 300))
    modes = ["experiment", "release", "per document"]
    spec = {"mechanism": name, "epsilons": [2.0], "modes": modes, "seconds": 0.02, "compare": True, "idle_mb": 0.0}
    monkeypatch.setattr(sys, "argv", ["mechanisms", "--child", json.dumps(spec | files)])
    mechanisms.main()
    rows = json.loads(capsys.readouterr().out)
    assert [row["mode"] for row in rows] == modes
    assert all(row["rate"] > 0 and row["limit"] > 0 and row["tokens"] > 0 for row in rows)
    assert rows[0]["speed_up"] == pytest.approx(rows[0]["rate"] / rows[0]["per_word_rate"])
