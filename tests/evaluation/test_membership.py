"""Membership inference: AUC by hand; an overfitted classifier gives its texts away, a constant one does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tasks.errors import ParameterError
from tasks.evaluation.membership import Labelled, PaperAttacker, auc, membership, quarters

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

    def predict_proba(self, features: Any) -> np.ndarray:
        sure = features.max(axis=1)
        return np.column_stack([1 - sure, sure])


def parts(seed: int = 1) -> list[Labelled]:
    """Members, others, shadow members and shadow others, all of one law."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((4 * SIZE, 5))
    labels = (features[:, 0] > 0).astype(np.int64)
    return [Labelled(features[rows], labels[rows]) for rows in quarters(4 * SIZE, rng)]


def attack(make: Any, attacker: Any, seed: int = 1, trained_on: Labelled | None = None, **options: Any) -> Any:
    members, others, shadow_members, shadow_others = parts(seed)
    return membership(
        make,
        attacker,
        trained_on=trained_on or members,
        members=members,
        others=others,
        shadow_members=shadow_members,
        shadow_others=shadow_others,
        **options,
    )


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
        return attacker.predict_proba(features)

    assert np.array_equal(scores(3), scores(3)) and not np.array_equal(scores(3), scores(4))


def test_quarters_share_nothing() -> None:
    made = quarters(11, np.random.default_rng(1))
    assert sorted(np.concatenate(made).tolist()) == list(range(11)) and {len(part) for part in made} == {2, 3}
    assert all((np.diff(part) > 0).all() for part in made)
    with pytest.raises(ParameterError, match="there are 7"):
        quarters(7, np.random.default_rng(1))


def test_what_cannot_be_attacked_is_refused() -> None:
    with pytest.raises(ParameterError, match="there are 0 and 1"):
        auc(np.zeros(0), np.zeros(1))
    with pytest.raises(ParameterError, match="has 2 classes and the labels 3"):
        attack(Constant, Surest, trained_on=Labelled(np.zeros((3, 5)), np.array([0, 1, 2])))
