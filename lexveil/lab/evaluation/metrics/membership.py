"""Membership inference metric: how well an attacker can tell from a classifier's outputs which
texts the classifier was trained on.

Source: Carvalho et al. (2023, TEM), sections 5.1 and 5.3, after Shokri et al. (2017), with one
shadow model. The target T is trained on the private texts (TR1 in the paper), the shadow S on texts
of the attacker (TE2). The attack model A learns from the outputs of S which texts are in (TE2) and
which are out (TE1), and is evaluated on the outputs of T, where TR1 is in and TR2 is out. The
result is its AUC: 0.5 is guessing. The attack model sees the outputs only, not the labels.

The paper's classifier is FastText; here it is ``TfidfLogistic``, whatever ``evaluation.classifier``
is, because its outputs are probabilities and it is trained again for every data set, run and
shuffle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from lexveil.base.types import Floats, Ids
from lexveil.lab.evaluation.classifier import TfidfLogistic
from lexveil.lab.evaluation.metrics.base import (
    AttackModel,
    DatasetTexts,
    Entry,
    LeftOut,
    Metric,
    PaperTable,
    Score,
)
from lexveil.lab.evaluation.scores import DECIMALS, mean_sd

STREAM = "membership"  # random stream with which training and attack draw the same parts
EPOCHS = 20  # epochs of the attack model
MIN_PART = (
    8  # smallest number of texts in each of the four parts: with fewer, an AUC is meaningless
)

MEMBERSHIP = Score(
    name="membership_auc",
    metric="membership",
    words="AUC",
    path=("auc",),
    glance=("membership_auc", "Membership AUC"),
)


@dataclass(frozen=True, slots=True)
class Membership:
    """Result of one membership inference attack.

    Attributes:
        auc: probability that a text of the training set gets a higher score than another text; ties
            count half.
        standard_error: standard error of the AUC over texts (Hanley and McNeil, 1982), for fixed
            models.
        n_in: number of training texts in the evaluation of the attack.
        n_out: number of other texts.
    """

    auc: float
    standard_error: float
    n_in: int
    n_out: int


def quarters(labels: Ids, rng: np.random.Generator) -> tuple[Ids, Ids, Ids, Ids]:
    """Split n rows at random into four disjoint parts, each with ascending row numbers.

    The parts serve as members, others, shadow members and shadow others. Their sizes differ by at
    most one, and so do their numbers of texts of each label.

    Args:
        labels: (n,) label of each row, 0 to c - 1.
    """
    order = rng.permutation(len(labels))
    dealt = order[np.argsort(labels[order], kind="stable")]
    first, second, third, fourth = (np.sort(dealt[part::4]) for part in range(4))
    return first, second, third, fourth


def auc(scores_in: Floats, scores_out: Floats) -> Membership:
    """Compute the area under the ROC curve that separates scores of members ``scores_in`` (n_in,)
    from scores of others ``scores_out`` (n_out,), by ranks.
    """
    from scipy.stats import rankdata

    n_in = len(scores_in)
    n_out = len(scores_out)
    ranks = rankdata(np.concatenate([scores_in, scores_out]))[:n_in]
    area = float((ranks.sum() - n_in * (n_in + 1) / 2) / (n_in * n_out))
    one = area / (2 - area)
    other = 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_in - 1) * (one - area**2) + (n_out - 1) * (other - area**2)
    return Membership(area, float(np.sqrt(max(spread, 0.0) / (n_in * n_out))), n_in, n_out)


class PaperAttacker:
    """The attack model of the TEM paper: two layers of 64 units with ReLU, Adam, batches of 64, 20
    epochs; implemented by scikit-learn's MLP.

    The seed decides the first weights and the order of the batches.

    Attributes:
        layers: weights (inputs, outputs) and biases (outputs,) of each layer; empty before
            training. They are separate from the library's model, so that they can be stored as
            arrays.
    """

    def __init__(self, seed: int, layers: Sequence[tuple[Floats, Floats]] = ()) -> None:
        self.seed = seed
        self.layers = layers

    def fit(self, features: Floats, labels: Ids) -> None:
        """Train the attack model for EPOCHS epochs on a classifier's outputs (n, c), and on whether
        each text was a training text.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        # No weight decay and no early stopping: the paper has neither.
        model = MLPClassifier(
            (64, 64),
            alpha=0.0,
            batch_size=min(64, len(features)),
            max_iter=EPOCHS,
            n_iter_no_change=EPOCHS,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            # the warning is expected: training runs for exactly the paper's number of epochs
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features, labels)
        self.layers = list(zip(model.coefs_, model.intercepts_, strict=True))

    def score(self, features: Floats) -> Floats:
        """Return the log odds (n,) that each text is a training text."""
        for weights, biases in self.layers[:-1]:
            features = np.maximum(features @ weights + biases, 0.0)
        weights, biases = self.layers[-1]
        odds: Floats = (features @ weights + biases)[:, 0]
        return odds


@dataclass(frozen=True, slots=True)
class Parts:
    """The texts of a data set that take part in an attack, and their labels.

    Attributes:
        rows: (n,) rows of the texts that have a label.
        labels: (n,) label of each text, 0 to c - 1.
    """

    rows: Ids
    labels: Ids

    @property
    def n_classes(self) -> int:
        """Number of classes c of the labels."""
        return int(self.labels.max()) + 1

    def cut(self, rng: np.random.Generator) -> tuple[tuple[Ids, Ids, Ids, Ids], int]:
        """Split the texts at random into the four parts of ``quarters``, and draw a seed for the
        classifiers. Generators in equal states give equal results.
        """
        return quarters(self.labels, rng), int(rng.integers(2**31))

    def classifier(self, counts: csr_array, part: Ids, seed: int) -> TfidfLogistic:
        """Train a classifier on the texts of one part; ``counts`` has the n-gram counts of all
        texts.
        """
        return TfidfLogistic(seed).fit(counts[self.rows[part]], self.labels[part])

    def outputs(
        self, classifier: TfidfLogistic, counts: csr_array, parts: Sequence[Ids]
    ) -> list[Floats]:
        """Return a classifier's probabilities (n, c) for the texts of each part."""
        return [classifier.predict_proba(counts[self.rows[part]]) for part in parts]


def parts_of(classes: Sequence[str | None]) -> Parts | LeftOut:
    """Return all texts that have a class, whatever their split, as the data of a membership attack;
    or return the reason why no attack is possible.

    Args:
        classes: (n,) class of each text, None for a text without a class.
    """
    rows = np.array([row for row, name in enumerate(classes) if name is not None], dtype=np.int64)
    names, labels = np.unique([str(classes[row]) for row in rows.tolist()], return_inverse=True)
    if not len(rows):
        return LeftOut("no document has a value in column label")
    if len(names) < 2:
        return LeftOut("all documents have the same value in column label")
    if len(rows) < 4 * MIN_PART:
        return LeftOut(
            f"only {len(rows):,} documents have a value in column label; each of the four parts "
            f"needs {MIN_PART}"
        )
    if np.bincount(labels).min() < 4:
        return LeftOut(
            "a value in column label has fewer than 4 documents, but each of the four parts "
            "needs one"
        )
    return Parts(rows, labels)


def attackers(
    clean: csr_array, parts: Parts, rngs: Sequence[np.random.Generator]
) -> list[PaperAttacker]:
    """Train one membership attack model for each generator. The attack models learn from clean (not
    rewritten) texts only, so all runs share them.

    Args:
        clean: (n, m) counts of n-grams of n clean texts.
    """
    trained = []
    for rng in rngs:
        (_, _, *shadow_parts), seed = parts.cut(rng)
        outputs = parts.outputs(parts.classifier(clean, shadow_parts[0], seed), clean, shadow_parts)
        attacker = PaperAttacker(seed)
        attacker.fit(
            np.vstack(outputs), np.repeat(np.array([1, 0]), [len(part) for part in outputs])
        )
        trained.append(attacker)
    return trained


def attacked(
    clean: csr_array,
    private: csr_array,
    parts: Parts,
    rngs: Sequence[np.random.Generator],
    trained: Sequence[AttackModel],
) -> list[Membership]:
    """Run membership attacks on classifiers that were trained on rewritten texts, once for each
    generator.

    The paper's four parts come from two files of one source; this function draws them anew for each
    generator. Members are evaluated in their clean form, because an attacker who suspects that a
    text was in the training set has the text, not its rewriting.

    Args:
        clean: (n, m) counts of n-grams of n clean texts.
        private: (n, m) counts of the same texts, rewritten; equal to ``clean`` for the baseline.
        rngs: the generators that were given to ``attackers``, in the same state.
        trained: the attack models that ``attackers`` returned.
    """
    results = []
    for rng, attacker in zip(rngs, trained, strict=True):
        (members, others, *_), seed = parts.cut(rng)
        target = parts.classifier(private, members, seed)
        results.append(auc(*map(attacker.score, parts.outputs(target, clean, (members, others)))))
    return results


def membership_entry(results: Sequence[Membership], n_classes: int) -> dict[str, object]:
    """Summarize the attacks on one data set as JSON values; ``standard_error`` is the mean over the
    attacks.
    """
    return {
        "left_out": None,
        "n_in": results[0].n_in,
        "n_out": results[0].n_out,
        "n_classes": n_classes,
        "known_labels": False,
        "auc": mean_sd([result.auc for result in results]),
        "standard_error": round(fmean(result.standard_error for result in results), DECIMALS),
    }


class MembershipInference(Metric):
    """Membership inference metric: AUC of the attack of the TEM paper, section 5.1."""

    name = "membership"
    title = "membership inference"
    only_back_end = "linear"
    limits = (0.0, 1.0)
    same = ("left_out", "n_in", "n_out", "n_classes", "known_labels")
    trained = True
    scores = (MEMBERSHIP,)
    tables = (
        PaperTable("membership", "membership inference, AUC", (MEMBERSHIP,), "TEM Figure 1b"),
    )
    explanation = (
        "<strong>membership inference</strong>, which asks a\nclassifier that learnt from "
        "rewritten texts whether a text was among them: an AUC of 0.5 is guessing"
    )

    def compute(self, texts: DatasetTexts) -> Entry:
        """Run the membership attack: train classifiers on rewritten texts, and apply the attack
        models to the classifiers' outputs for clean texts.
        """
        parts = parts_of(texts.column("label"))
        if isinstance(parts, LeftOut):
            return {"left_out": parts.reason}
        assert texts.models.attackers is not None
        rngs = [
            texts.stream(STREAM, texts.dataset, str(number))
            for number in range(texts.settings.shuffles)
        ]
        clean, private = texts.classified
        results = attacked(clean.counts, private.counts, parts, rngs, texts.models.attackers)
        return membership_entry(results, parts.n_classes)

    def values(
        self,
        entry: Entry,
        setting: str | None,  # noqa: ARG002
    ) -> list[tuple[float | None, Sequence[float] | None]]:
        """Return the mean AUC of the attacks, with the AUC of each attack."""
        return [(entry["auc"]["mean"], entry["auc"]["each"])]

    def summary(self, entry: Entry) -> str:
        """Return the AUC of the attack and its standard error as one line."""
        auc = entry["auc"]["mean"]
        error = entry["standard_error"]
        return (
            f"AUC {auc:.3f} ± {error:.3f}, {entry['n_in']:,} members and {entry['n_out']:,} others"
        )

    def note(self, entry: Mapping[str, Any]) -> str:
        """Return the note below a table of this metric: numbers of texts, and the meaning of ±."""
        return (
            f"{entry['n_in']:,} training texts and {entry['n_out']:,} other texts; 0.5 is "
            "guessing. ± is the standard deviation over trainings."
        )

    def standard_error(
        self,
        entry: Mapping[str, Any],
        mean: float,  # noqa: ARG002
        sd: float | None,
    ) -> float | None:
        """Return the standard error of an AUC, from the spread over trainings and over texts."""
        return math.hypot(sd or 0.0, entry.get("standard_error") or 0.0)
