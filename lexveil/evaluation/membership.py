"""Membership inference: can an attacker tell which texts a classifier was trained on, from its outputs alone?

Source: Carvalho et al. (2023, TEM), sections 5.1 and 5.3, after Shokri et al. (2017), with one shadow model. The target
T is trained on the private texts (TR1 in the paper), the shadow S on texts of the attacker (TE2). The attack model A
learns from the outputs of S which texts are in (TE2) and which are out (TE1), and is evaluated on the outputs of T,
where TR1 is in and TR2 is out. Its AUC is the result: 0.5 is guessing.

The paper's attacker sees the outputs only. Shokri's also knows each text's label, and so how well the classifier fits
it, which tells more: ``known_labels``.

The paper's classifier is FastText; here it is that of ``linear.TfidfLogistic``, whatever ``evaluation.classifier`` is,
for its outputs are probabilities and it is trained again for every data set, run and shuffle.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from lexveil.errors import ParameterError
from lexveil.evaluation.linear import TfidfLogistic
from lexveil.evaluation.scores import DIGITS, mean_sd
from lexveil.evaluation.utility import LeftOut
from lexveil.types import Floats, Ids

STREAM = "membership"  # of random numbers: training and attack cut the same parts by it
EPOCHS = 20  # of the attack model
MIN_PART = 8  # texts in each of the four parts: with fewer, an AUC says nothing


class Classifier(Protocol):
    """What scikit-learn calls a classifier with probabilities."""

    def fit(self, features: Any, labels: Ids) -> Any:
        """Learn from n rows and their labels, (n,)."""

    def predict_proba(self, features: Any) -> Floats:
        """(n, c) probabilities of the c classes, in ascending order of those it was fitted with."""


class Attacker(Protocol):
    """An attack model."""

    def fit(self, features: Floats, labels: Ids) -> None:
        """Learn from what is seen of n texts, (n, c), and whether each was in, 1 or 0, (n,)."""

    def score(self, features: Floats) -> Floats:
        """(n,) the higher, the surer that a text was in."""


class Labelled(NamedTuple):
    """n texts as the classifier takes them, dense or sparse, with their labels (n,)."""

    features: Any
    labels: Ids


@dataclass(frozen=True, slots=True)
class Membership:
    """The result of one attack.

    Attributes:
        auc: probability that a text in the training set gets a higher score than one that is not; ties count half.
        standard_error: of the AUC over texts (Hanley and McNeil, 1982); the models are taken as they are.
        n_in: members that the attack was evaluated on.
        n_out: others.
    """

    auc: float
    standard_error: float
    n_in: int
    n_out: int


def quarters(labels: Ids, rng: np.random.Generator) -> tuple[Ids, Ids, Ids, Ids]:
    """Split n rows at random into four parts that share none; ascending each.

    They serve as members, others, shadow members and shadow others. Their sizes differ by one at most, and so do their
    numbers of texts of each label.

    Args:
        labels: (n,) 0 to c - 1.
    """
    order = rng.permutation(len(labels))
    dealt = order[np.argsort(labels[order], kind="stable")]
    first, second, third, fourth = (np.sort(dealt[part::4]) for part in range(4))
    return first, second, third, fourth


def auc(scores_in: Floats, scores_out: Floats) -> Membership:
    """Area under the ROC curve of ``scores_in`` (n_in,) against ``scores_out`` (n_out,), by ranks.

    Raises:
        ParameterError: if one of the two is empty.
    """
    from scipy.stats import rankdata

    n_in, n_out = len(scores_in), len(scores_out)
    if not (n_in and n_out):
        raise ParameterError(f"an AUC needs members and others; there are {n_in} and {n_out}")
    ranks = rankdata(np.concatenate([scores_in, scores_out]))[:n_in]
    area = float((ranks.sum() - n_in * (n_in + 1) / 2) / (n_in * n_out))
    one, other = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_in - 1) * (one - area**2) + (n_out - 1) * (other - area**2)
    return Membership(area, float(np.sqrt(max(spread, 0.0) / (n_in * n_out))), n_in, n_out)


def attack_features(classifier: Classifier, asked: Labelled, n_classes: int, known_labels: bool) -> Floats:
    """What the attacker sees of a classifier: (n, c), and c more columns that mark each text's label if it knows them.

    Raises:
        ParameterError: if the classifier does not tell ``n_classes`` classes apart.
    """
    outputs = np.asarray(classifier.predict_proba(asked.features), dtype=np.float64)
    if outputs.shape[1] != n_classes:
        raise ParameterError(
            f"the classifier under attack has {outputs.shape[1]} classes and the labels {n_classes}; every part must "
            "hold texts of every class, so give more texts or merge rare classes"
        )
    return np.hstack([outputs, np.eye(n_classes)[asked.labels]]) if known_labels else outputs


def train_attacker(
    make_classifier: Callable[[], Classifier],
    attacker: Attacker,
    *,
    shadow_members: Labelled,
    shadow_others: Labelled,
    known_labels: bool = False,
) -> Attacker:
    """Train a shadow, and ``attacker`` on what it says of both parts, and return the attacker. Labels are 0 to c - 1.

    Args:
        make_classifier: a new classifier, not fitted.
        attacker: an attack model, not fitted.
        shadow_members: what the shadow is trained on.
        shadow_others: texts the shadow was not trained on.
        known_labels: whether the attacker knows each text's label.

    Raises:
        ParameterError: if a part lacks a class, or is empty.
    """
    n_classes = _n_classes(shadow_members, shadow_others)
    shadow = make_classifier()
    shadow.fit(shadow_members.features, shadow_members.labels)
    known = [attack_features(shadow, part, n_classes, known_labels) for part in (shadow_members, shadow_others)]
    attacker.fit(np.vstack(known), np.repeat(np.array([1, 0]), [len(part) for part in known]))
    return attacker


def membership(
    make_classifier: Callable[[], Classifier],
    attacker: Attacker,
    *,
    trained_on: Labelled,
    members: Labelled,
    others: Labelled,
    known_labels: bool = False,
) -> Membership:
    """Train the target, and attack it. Labels are 0 to c - 1.

    Args:
        make_classifier: a new classifier, not fitted.
        attacker: what ``train_attacker`` gave.
        trained_on: what the target is fitted on: the members after privatization, or as they are for the baseline.
        members: the texts whose membership is inferred, unchanged.
        others: texts the target was not trained on.
        known_labels: whether the attacker knows each text's label.

    Raises:
        ParameterError: if a part lacks a class, or is empty.
    """
    n_classes = _n_classes(trained_on, members, others)
    target = make_classifier()
    target.fit(trained_on.features, trained_on.labels)
    asked = (attack_features(target, part, n_classes, known_labels) for part in (members, others))
    return auc(*(attacker.score(part) for part in asked))


def _n_classes(*parts: Labelled) -> int:
    return 1 + max(int(part.labels.max(initial=-1)) for part in parts)


class PaperAttacker:
    """The paper's attack model: two layers of 64 with ReLU, Adam, batches of 64, 20 epochs; scikit-learn's MLP.

    Its weights and the order of its batches come from ``seed``.

    Attributes:
        layers: weights (inputs, outputs) and biases (outputs,) of each layer; empty before it is trained. Kept apart
            from the library's model, so that they can be stored as arrays.
    """

    def __init__(self, seed: int, layers: Sequence[tuple[Floats, Floats]] = ()) -> None:
        self.seed, self.layers = seed, layers

    def fit(self, features: Floats, labels: Ids) -> None:
        """Train EPOCHS epochs, on (n, c) outputs."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        # No weight decay and no early end: the paper has neither.
        model = MLPClassifier(
            (64, 64),
            alpha=0.0,
            batch_size=min(64, len(features)),
            max_iter=EPOCHS,
            n_iter_no_change=EPOCHS,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # as many epochs as the paper ran, and no more
            model.fit(features, labels)
        self.layers = list(zip(model.coefs_, model.intercepts_, strict=True))

    def score(self, features: Floats) -> Floats:
        """(n,) log odds of in."""
        for weights, biases in self.layers[:-1]:
            features = np.maximum(features @ weights + biases, 0.0)
        weights, biases = self.layers[-1]
        odds: Floats = (features @ weights + biases)[:, 0]
        return odds


@dataclass(frozen=True, slots=True)
class Parts:
    """Which texts of a data set take part, and their labels.

    Attributes:
        rows: (n,) of the texts that have a label.
        labels: (n,) 0 to c - 1.
    """

    rows: Ids
    labels: Ids

    @property
    def n_classes(self) -> int:
        """C."""
        return int(self.labels.max()) + 1

    def cut(self, rng: np.random.Generator) -> tuple[tuple[Ids, Ids, Ids, Ids], int]:
        """Four parts of ``quarters``, and a seed; the same from the same generator."""
        return quarters(self.labels, rng), int(rng.integers(2**31))

    def of(self, counts: csr_array, part: Ids) -> Labelled:
        """The counts of one part, of the counts of all texts."""
        return Labelled(counts[self.rows[part]], self.labels[part])


def parts_of(classes: Sequence[str | None]) -> Parts | LeftOut:
    """All texts that have a class, whatever their split, or why there can be no attack.

    Args:
        classes: (n,) None where there is none.
    """
    rows = np.array([row for row, name in enumerate(classes) if name is not None], dtype=np.int64)
    names, labels = np.unique([str(classes[row]) for row in rows.tolist()], return_inverse=True)
    if not len(rows):
        return LeftOut("no document has a value in column label")
    if len(names) < 2:
        return LeftOut("all documents have the same value in column label")
    if len(rows) < 4 * MIN_PART:
        return LeftOut(f"{len(rows):,} documents have a value in column label, and four parts of {MIN_PART} are needed")
    if np.bincount(labels).min() < 4:
        return LeftOut("a value in column label has fewer than 4 documents, and each of four parts needs one")
    return Parts(rows, labels)


def attackers(clean: csr_array, parts: Parts, rngs: Sequence[np.random.Generator]) -> list[PaperAttacker]:
    """Train one attack model for each generator; they learn from clean texts only, so that all runs share them.

    Args:
        clean: (n, m) counts of n-grams of n texts as they were given.
    """
    trained = []
    for rng in rngs:
        (_, _, members, others), seed = parts.cut(rng)
        attacker = PaperAttacker(seed)
        shadow_members, shadow_others = parts.of(clean, members), parts.of(clean, others)
        make = partial(TfidfLogistic, seed)
        train_attacker(make, attacker, shadow_members=shadow_members, shadow_others=shadow_others)
        trained.append(attacker)
    return trained


def attacked(
    clean: csr_array,
    private: csr_array,
    parts: Parts,
    rngs: Sequence[np.random.Generator],
    trained: Sequence[PaperAttacker],
) -> list[Membership]:
    """Attack classifiers that were trained on rewritten texts, once for each generator.

    The paper's four parts are from two files of one source; here they are drawn anew for each generator. Members are
    evaluated unchanged: an attacker who suspects that a text was in has the text, and not its rewriting.

    Args:
        clean: (n, m) counts of n-grams of n texts as they were given.
        private: (n, m) of the same texts, rewritten; the same as ``clean`` for the baseline.
        rngs: as ``attackers`` was given them, in the same state.
        trained: what it gave.
    """
    results = []
    for rng, attacker in zip(rngs, trained, strict=True):
        (members, others, _, _), seed = parts.cut(rng)
        results.append(
            membership(
                partial(TfidfLogistic, seed),
                attacker,
                trained_on=parts.of(private, members),
                members=parts.of(clean, members),
                others=parts.of(clean, others),
            )
        )
    return results


def membership_entry(results: Sequence[Membership], n_classes: int) -> dict[str, object]:
    """What is written of the attacks on one data set, as JSON values; ``standard_error`` is the mean of theirs."""
    return {
        "left_out": None,
        "n_in": results[0].n_in,
        "n_out": results[0].n_out,
        "n_classes": n_classes,
        "known_labels": False,
        "auc": mean_sd([result.auc for result in results]),
        "standard_error": round(fmean(result.standard_error for result in results), DIGITS),
    }
