"""Membership inference: AUC by hand; an overfitted classifier gives its texts away, a constant one does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from lexveil.errors import ParameterError
from lexveil.evaluation import membership as module
from lexveil.evaluation.membership import (
    Labelled,
    Membership,
    PaperAttacker,
    Parts,
    attacked,
    attackers,
    auc,
    membership,
    membership_entry,
    parts_of,
    quarters,
    train_attacker,
)
from lexveil.evaluation.ngrams import CountedTexts
from lexveil.evaluation.utility import LeftOut

SIZE = 400  # texts in each of four parts


class Nearest:
    """Overfitted by design: the label of the nearest training row, surer the nearer it is."""

    def fit(self, features: Any, labels: Any) -> None:
        self.features, self.labels = features, labels

    def predict_proba(self, features: Any) -> np.ndarray:
        distances = np.linalg.norm(features[:, None] - self.features[None], axis=2)
        nearest = distances.argmin(axis=1)
        sure = 0.5 + 0.5 * np.exp(-distances[np.arange(len(features)), nearest])
        p = np.where(self.labels[nearest] == 1, sure, 1 - sure)
        return np.column_stack([1 - p, p])


class Right:
    """Right about the label of every row it was trained on, wrong about every other, and never more or less sure."""

    def fit(self, features: Any, labels: Any) -> None:
        self.rows = {row.tobytes() for row in features}

    def predict_proba(self, features: Any) -> np.ndarray:
        true = features[:, 0] > 0
        p = np.array(
            [right if row.tobytes() in self.rows else not right for row, right in zip(features, true, strict=True)]
        )
        return np.column_stack([np.where(p, 0.2, 0.8), np.where(p, 0.8, 0.2)])


class Constant:
    def fit(self, features: Any, labels: Any) -> None:
        self.p = labels.mean()

    def predict_proba(self, features: Any) -> np.ndarray:
        return np.tile([1 - self.p, self.p], (len(features), 1))


class Surest:
    """An attack model without training: in, if the classifier is sure."""

    def fit(self, features: Any, labels: Any) -> None:
        assert set(labels) == {0, 1}

    def score(self, features: Any) -> np.ndarray:
        return features.max(axis=1)


def parts(seed: int = 1) -> list[Labelled]:
    """Members, others, shadow members and shadow others, all of one law."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((4 * SIZE, 5))
    labels = (features[:, 0] > 0).astype(np.int64)
    return [Labelled(features[rows], labels[rows]) for rows in np.split(rng.permutation(4 * SIZE), 4)]


def attack(make: Any, attacker: Any, seed: int = 1, trained_on: Labelled | None = None, **options: Any) -> Any:
    members, others, shadow_members, shadow_others = parts(seed)
    trained = train_attacker(make, attacker(), shadow_members=shadow_members, shadow_others=shadow_others, **options)
    return membership(make, trained, trained_on=trained_on or members, members=members, others=others, **options)


def test_auc_by_hand() -> None:
    """Pairs (3,2) (3,1) (1,1) won 1, 1, 1/2 and (1,2) lost: 2.5 of 4."""
    assert auc(np.array([3.0, 1.0]), np.array([2.0, 1.0])).auc == pytest.approx(2.5 / 4)
    assert auc(np.array([5.0]), np.array([1.0, 2.0])).auc == 1
    assert auc(np.array([0.0]), np.array([1.0, 2.0])).auc == 0
    assert auc(np.zeros(7), np.zeros(3)).auc == 0.5


def test_standard_error_is_the_spread_of_the_auc() -> None:
    """1,000 repetitions with 60 and 40 normal scores one apart: 10% off at most, where chance is about 2.2%."""
    rng = np.random.default_rng(2)
    made = [auc(rng.normal(1, 1, 60), rng.normal(0, 1, 40)) for _ in range(1000)]
    spread = np.std([one.auc for one in made])
    assert np.mean([one.standard_error for one in made]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("attacker", [Surest, lambda: PaperAttacker(3)])
def test_an_overfitted_classifier_gives_its_texts_away(attacker: Any) -> None:
    got = attack(Nearest, attacker)
    assert got.auc > 0.9 and (got.n_in, got.n_out) == (SIZE, SIZE)


@pytest.mark.parametrize("attacker", [Surest, lambda: PaperAttacker(3)])
def test_a_constant_classifier_gives_nothing_away(attacker: Any) -> None:
    got = attack(Constant, attacker)
    assert got.auc == 0.5 and got.standard_error == pytest.approx(1 / np.sqrt(6 * SIZE), rel=0.01)


def test_a_classifier_of_other_texts_does_not_know_the_members() -> None:
    """Overfitted, but not to them: within 5 standard errors of guessing."""
    got = attack(Nearest, Surest, trained_on=parts(seed=2)[0])
    assert abs(got.auc - 0.5) < 5 * got.standard_error


def test_noise_on_what_is_trained_on_hides_members() -> None:
    members = parts()[0]
    noise = np.random.default_rng(4).standard_normal(members.features.shape)
    aucs = [
        attack(Nearest, Surest, trained_on=Labelled(members.features + scale * noise, members.labels)).auc
        for scale in (0.0, 0.2, 2.0)
    ]
    assert aucs[0] > aucs[1] > aucs[2] and aucs[2] < 0.6


def test_an_attacker_who_knows_labels_sees_more() -> None:
    """Right or wrong shows only beside the label; outputs alone are the same for all."""
    assert attack(Right, lambda: PaperAttacker(3)).auc < 0.6
    assert attack(Right, lambda: PaperAttacker(3), known_labels=True).auc > 0.95


def test_same_seed_same_attacker() -> None:
    features, labels = np.random.default_rng(1).random((100, 2)), np.arange(100) % 2

    def scores(seed: int) -> np.ndarray:
        attacker = PaperAttacker(seed)
        attacker.fit(features, labels)
        return attacker.score(features)

    assert np.array_equal(scores(3), scores(3)) and not np.array_equal(scores(3), scores(4))


def test_quarters_share_nothing_and_have_the_same_of_each_label() -> None:
    labels = np.array([0] * 18 + [1] * 9 + [2] * 4)
    made = quarters(labels, np.random.default_rng(1))
    assert sorted(np.concatenate(made).tolist()) == list(range(31)) and {len(part) for part in made} == {7, 8}
    assert all((np.diff(part) > 0).all() for part in made)
    shares = np.array([np.bincount(labels[part], minlength=3) for part in made])
    assert (shares.max(axis=0) - shares.min(axis=0)).tolist() == [1, 1, 0]


def test_quarters_are_drawn_at_random() -> None:
    labels, times = np.arange(40) % 2, np.zeros(40)
    for seed in range(2000):
        times[quarters(labels, np.random.default_rng(seed))[0]] += 1
    assert (abs(times - 500) < 6 * np.sqrt(2000 * 3 / 16)).all()


def test_what_cannot_be_attacked_is_refused() -> None:
    with pytest.raises(ParameterError, match="there are 0 and 1"):
        auc(np.zeros(0), np.zeros(1))
    with pytest.raises(ParameterError, match="has 2 classes and the labels 3"):
        attack(Constant, Surest, trained_on=Labelled(np.zeros((3, 5)), np.array([0, 1, 2])))


def test_scores_are_the_log_odds_of_the_library_also_from_stored_layers() -> None:
    features, labels = np.random.default_rng(1).random((100, 2)), np.arange(100) % 2
    attacker = PaperAttacker(3)
    attacker.fit(features, labels)
    library = MLPClassifier((64, 64), alpha=0.0, batch_size=64, max_iter=20, n_iter_no_change=20, random_state=3)
    with pytest.warns(ConvergenceWarning):
        p = library.fit(features, labels).predict_proba(features)
    assert attacker.score(features) == pytest.approx(np.log(p[:, 1] / p[:, 0]))
    assert np.array_equal(PaperAttacker(0, attacker.layers).score(features), attacker.score(features))


def both(clean: Any, private: Any, labels: Any, n: int = 3) -> list[Membership]:
    """Attackers and attacks, from the same generators anew."""
    found = parts_of(labels)
    assert isinstance(found, Parts)
    return attacked(clean.counts, private.counts, found, rngs(n), attackers(clean.counts, found, rngs(n)))


def letters(n: int) -> tuple[list[str], list[str | None]]:
    """Texts in which nothing tells the label but what is learnt by heart, and none of which is like another."""
    rng = np.random.default_rng(5)
    texts = [" ".join(f"w{one}" for one in rng.integers(0, 400, 20)) for _ in range(n)]
    return texts, [f"c{one}" for one in rng.integers(0, 2, n)]


def rngs(n: int = 3) -> list[np.random.Generator]:
    return [np.random.default_rng(number) for number in range(n)]


def test_members_are_found_where_they_were_trained_on_in_clear_and_not_where_rewriting_kept_nothing() -> None:
    texts, labels = letters(400)
    clean, blank = CountedTexts.each(texts, [f"w{len(text) % 7} w{len(text) % 11}" for text in texts])
    found, hidden = (both(clean, one, labels) for one in (clean, blank))
    assert all(one.auc > 0.7 for one in found) and len({one.auc for one in found}) == 3
    assert all(abs(one.auc - 0.5) < 4 * one.standard_error for one in hidden)
    assert [one.auc for one in both(clean, clean, labels)] == [one.auc for one in found]


def test_the_target_learns_from_rewritten_members_and_everything_else_is_in_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "train_attacker", lambda *_, **parts: given.append(parts))
    monkeypatch.setattr(module, "membership", lambda *_, **parts: given.append(parts) or Membership(0.5, 0.1, 1, 1))
    texts, labels = letters(64)
    labels[3] = labels[40] = None
    clean, private = CountedTexts.each(texts, [text.upper() + " x x" for text in texts])
    both(clean, private, labels, 1)
    parts = given[0] | given[1]
    assert [sorted(one) for one in given] == [["shadow_members", "shadow_others"], ["members", "others", "trained_on"]]
    row_of = {tuple(row): number for number, row in enumerate(clean.counts.toarray())}
    rows = {name: [row_of.get(tuple(row)) for row in part.features.toarray()] for name, part in parts.items()}
    assert rows.pop("trained_on") == [None] * len(rows["members"])  # no such text is there in clear
    assert (parts["trained_on"].features != private.counts[rows["members"]]).nnz == 0
    assert sorted(row for part in rows.values() for row in part) == [row for row in range(64) if row not in (3, 40)]
    for name, part in parts.items():
        assert part.labels.tolist() == [int(labels[row][1]) for row in rows.get(name, rows["members"])]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([None] * 40, "no document has a value in column label"),
        (["a"] * 40, "all documents have the same value"),
        (["a", "b"] * 15 + ["a", None], "31 documents have a value in column label, and four parts of 8"),
        (["a"] * 40 + ["b"] * 3, "fewer than 4 documents"),
    ],
)
def test_a_data_set_that_cannot_be_attacked_says_why(labels: list[str | None], reason: str) -> None:
    found = parts_of(labels)
    assert isinstance(found, LeftOut) and reason in found.reason


def test_as_few_texts_as_can_be_attacked() -> None:
    (texts,) = CountedTexts.each([f"a b {i}" for i in range(32)])
    (found,) = both(texts, texts, ["a"] * 28 + ["b"] * 4, 1)
    assert (found.n_in, found.n_out) == (8, 8)


def test_entry_by_hand() -> None:
    made = membership_entry([Membership(0.5, 0.1, 9, 8), Membership(0.7, 0.2, 9, 8)], 3)
    assert made == {
        "left_out": None, "n_in": 9, "n_out": 8, "n_classes": 3, "known_labels": False,
        "auc": {"mean": 0.6, "sd": 0.141421356, "each": [0.5, 0.7]}, "standard_error": 0.15,
    }  # fmt: skip
