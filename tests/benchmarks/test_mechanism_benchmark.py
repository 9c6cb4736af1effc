"""What is compared with does the same as what is compared, and the benchmark runs."""

import json
import sys

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from benchmarks import material, mechanisms, near_lists, per_word
from lexveil.mechanisms.registry import MECHANISMS, build_mechanism
from tests.mechanisms.toys import FALSE_ALARM, draw, fits, vectors

pytestmark = pytest.mark.slow

DRAWS = 4_000


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


@pytest.mark.parametrize("name", ["madlib", "mahalanobis", "vickrey", "rank_remap"])
@pytest.mark.parametrize(("error", "follows"), [(1.0, True), (0.5, False)])
def test_the_per_word_form_draws_as_the_mechanism_does(name: str, error: float, follows: bool) -> None:
    some = vectors()
    mechanism = mechanisms.make(name, some, np.arange(12, dtype=np.int32)[None])
    law = np.bincount(draw(mechanism, 3, 4.0 * error, samples=400_000), minlength=12) / 400_000
    assert fits(drawn_per_word(per_word.build(name, some), 3, 4.0), law) == follows


@pytest.mark.parametrize(("error", "same"), [(1.0, True), (0.5, False)])
def test_both_per_word_noises_have_one_law(error: float, same: bool) -> None:
    some = vectors()
    tidy = drawn_per_word(per_word.madlib(some, per_word.tidy_noise), 3, 4.0 * error)
    published = drawn_per_word(per_word.madlib(some), 3, 4.0)
    table = np.array([np.bincount(one, minlength=12) for one in (tidy, published)])
    assert (chi2_contingency(table[:, table.sum(axis=0) >= 10]).pvalue > FALSE_ALARM) == same


@pytest.mark.parametrize("name", [*MECHANISMS, "rank_remap"])
def test_every_mechanism_is_measured(name: str, tmp_path, capsys, monkeypatch) -> None:
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


def test_epsilons_differ_by_document_and_keep_their_size() -> None:
    budgets = material.document_epsilons(20_000, 5.0)
    assert len(budgets) == 20_000 and len(np.unique(budgets)) > 50
    lengths = np.diff(np.flatnonzero(np.diff(budgets, prepend=0, append=0)))
    assert budgets.min() > 0 and lengths.max() <= 4_000


def test_lists_of_near_words_are_measured(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(near_lists, "TOKENS", 200)
    near_lists.main(["--sizes", "200", "300", "--json", str(tmp_path / "figures.json")])
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [row["n_words"] for row in figures["lists"]] == [200, 300]
    assert len(figures["rates"]) == 2 * len(near_lists.DRAWS) and "grow as V^" in capsys.readouterr().out
