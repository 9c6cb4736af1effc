"""Membership inference: AUC by hand; a classifier gives texts away that it was trained on in clear,
and no others."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from lexveil.lab.evaluation.metrics.base import LeftOut
from lexveil.lab.evaluation.metrics.membership import (
    Membership,
    PaperAttacker,
    Parts,
    attacked,
    attackers,
    auc,
    membership_entry,
    parts_of,
    quarters,
)
from lexveil.lab.evaluation.ngrams import CountedTexts


def test_auc_by_hand():
    """Pairs (3,2) (3,1) (1,1) won 1, 1, 1/2 and (1,2) lost: 2.5 of 4."""
    assert auc(np.array([3.0, 1.0]), np.array([2.0, 1.0])).auc == pytest.approx(2.5 / 4)
    assert auc(np.array([5.0]), np.array([1.0, 2.0])).auc == 1
    assert auc(np.array([0.0]), np.array([1.0, 2.0])).auc == 0
    assert auc(np.zeros(7), np.zeros(3)).auc == 0.5


def test_standard_error_is_the_spread_of_the_auc():
    """1,000 repetitions with 60 and 40 normal scores one apart: 10% off at most, where chance is
    about 2.2%."""
    rng = np.random.default_rng(2)
    made = [auc(rng.normal(1, 1, 60), rng.normal(0, 1, 40)) for _ in range(1000)]
    spread = np.std([one.auc for one in made])
    assert np.mean([one.standard_error for one in made]) == pytest.approx(spread, rel=0.1)


def test_quarters_share_nothing_and_have_the_same_of_each_label():
    labels = np.array([0] * 18 + [1] * 9 + [2] * 4)
    made = quarters(labels, np.random.default_rng(1))
    assert sorted(np.concatenate(made).tolist()) == list(range(31)) and {
        len(part) for part in made
    } == {7, 8}
    assert all((np.diff(part) > 0).all() for part in made)
    shares = np.array([np.bincount(labels[part], minlength=3) for part in made])
    assert (shares.max(axis=0) - shares.min(axis=0)).tolist() == [1, 1, 0]


def test_scores_are_the_log_odds_of_the_library_also_from_stored_layers():
    features = np.random.default_rng(1).random((100, 2))
    labels = np.arange(100) % 2
    attacker = PaperAttacker(3)
    attacker.fit(features, labels)
    library = MLPClassifier(
        (64, 64), alpha=0.0, batch_size=64, max_iter=20, n_iter_no_change=20, random_state=3
    )
    with pytest.warns(ConvergenceWarning):
        p = library.fit(features, labels).predict_proba(features)
    assert attacker.score(features) == pytest.approx(np.log(p[:, 1] / p[:, 0]))
    assert np.array_equal(
        PaperAttacker(0, attacker.layers).score(features), attacker.score(features)
    )


def both(clean, private, labels, n=3):
    """Return attackers and attacks, from fresh generators of the same seeds."""
    found = parts_of(labels)
    assert isinstance(found, Parts)
    return attacked(
        clean.counts, private.counts, found, rngs(n), attackers(clean.counts, found, rngs(n))
    )


def letters(n):
    """Texts in which nothing tells the label but what is learnt by heart, and none of which is like
    another."""
    rng = np.random.default_rng(5)
    texts = [" ".join(f"w{one}" for one in rng.integers(0, 400, 20)) for _ in range(n)]
    return texts, [f"c{one}" for one in rng.integers(0, 2, n)]


def rngs(n=3):
    return [np.random.default_rng(number) for number in range(n)]


def test_members_are_found_of_training_in_clear_and_not_where_rewriting_kept_nothing():
    texts, labels = letters(400)
    clean, blank = CountedTexts.each(
        texts, [f"w{len(text) % 7} w{len(text) % 11}" for text in texts]
    )
    found, hidden = (both(clean, one, labels) for one in (clean, blank))
    assert all(one.auc > 0.7 for one in found) and len({one.auc for one in found}) == 3
    assert all(abs(one.auc - 0.5) < 4 * one.standard_error for one in hidden)
    assert [one.auc for one in both(clean, clean, labels)] == [one.auc for one in found]


def test_the_target_learns_from_rewritten_members_and_everything_else_is_in_clear(
    monkeypatch,
):
    """The test records the parts that are used: trainings of shadow and target model, and outputs
    from which attack models learn or on which they decide.
    """
    texts, labels = letters(64)
    labels[3] = labels[40] = None
    clean, private = CountedTexts.each(texts, [text.upper() + " x x" for text in texts])
    trained = []
    seen = []
    train = Parts.classifier
    outputs = Parts.outputs

    def recorded_training(parts, counts, part, seed):
        trained.append((counts is private.counts, parts.rows[part].tolist()))
        return train(parts, counts, part, seed)

    def recorded_outputs(parts, classifier, counts, of):
        assert counts is clean.counts
        seen.append([parts.rows[part].tolist() for part in of])
        return outputs(parts, classifier, counts, of)

    monkeypatch.setattr(Parts, "classifier", recorded_training)
    monkeypatch.setattr(Parts, "outputs", recorded_outputs)
    both(clean, private, labels, 1)
    (shadow_members, shadow_others), (members, others) = seen
    assert trained == [(False, shadow_members), (True, members)]
    parts = [shadow_members, shadow_others, members, others]
    assert sorted(row for part in parts for row in part) == [
        row for row in range(64) if row not in (3, 40)
    ]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([None] * 40, "no document has a value in column label"),
        (["a"] * 40, "all documents have the same value"),
        (
            ["a", "b"] * 15 + ["a", None],
            "31 documents have a value in column label; each of the four parts needs 8",
        ),
        (["a"] * 40 + ["b"] * 3, "fewer than 4 documents"),
    ],
)
def test_a_data_set_that_cannot_be_attacked_says_why(labels, reason):
    found = parts_of(labels)
    assert isinstance(found, LeftOut) and reason in found.reason


def test_entry_by_hand():
    made = membership_entry([Membership(0.5, 0.1, 9, 8), Membership(0.7, 0.2, 9, 8)], 3)
    assert made == {
        "left_out": None,
        "n_in": 9,
        "n_out": 8,
        "n_classes": 3,
        "known_labels": False,
        "auc": {"mean": 0.6, "sd": 0.141421356, "each": [0.5, 0.7]},
        "standard_error": 0.15,
    }
