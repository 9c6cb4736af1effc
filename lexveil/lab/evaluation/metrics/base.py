"""Base class of the evaluation metrics. A metric defines its computation, the range of its values,
and its display in the report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from lexveil.base.types import Floats, Rows
from lexveil.core.language_models.base import Encoder, LanguageModel, classified_texts
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.lab.evaluation.ngrams import CountedTexts

STREAM = "evaluate"  # the first name of the random streams of the evaluation

# record of one data set, as JSON values; "left_out" is None, or the reason why the data set was
# left out
Entry = dict[str, Any]


class EvaluationSettings(Protocol):
    """The parameters of section ``evaluation`` of params.yaml that metrics read."""

    @property
    def classifier(self) -> str:
        """Name of the classifier to train, one of the names in
        ``lexveil.lab.evaluation.registry``.
        """

    @property
    def shuffles(self) -> int:
        """Number of times that each classifier is trained, each time on shuffled documents."""

    @property
    def train_share(self) -> float:
        """Share of the documents of the train split that each training uses."""

    @property
    def max_classes(self) -> int:
        """Number of most frequent values of an attribute that are used as classes."""

    @property
    def max_texts(self) -> int | None:
        """Greatest number of texts of a data set that metrics compare; None compares all texts."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Statement that a metric leaves out a data set, with the reason."""

    reason: str


def drawn(n_texts: Sequence[int], max_texts: int | None, rng: np.random.Generator) -> Rows:
    """Draw documents at random that have at most ``max_texts`` texts together, but at least one
    document; return their rows in ascending order.

    Args:
        n_texts: number of texts of each of n documents, 1 or 2.
        max_texts: greatest number of texts; None takes all documents.
    """
    if max_texts is None:
        return np.arange(len(n_texts))
    order = rng.permutation(len(n_texts))
    n_drawn = np.searchsorted(np.cumsum(np.asarray(n_texts)[order]), max_texts, side="right")
    return np.sort(order[: max(int(n_drawn), 1)])


class AttackModel(Protocol):
    """Trained attack model that infers whether a text was in a classifier's training set."""

    def score(self, features: Floats) -> Floats:
        """Return scores (n,) from a classifier's outputs (n, c) for n texts; a higher score means
        that the text is more likely a training text.
        """


@dataclass(frozen=True, slots=True)
class Models:
    """Models that are loaded before the metrics are computed: the text encoder, the language model,
    and the membership attack models.
    """

    encoder_of: Callable[[Sequence[str]], Encoder] | None = None
    language_model: LanguageModel | None = None
    attackers: Sequence[AttackModel] | None = None


@dataclass(frozen=True)
class DatasetTexts:
    """Clean and rewritten texts of one data set, with the settings and models by which metrics
    measure them.

    Attributes:
        dataset: name of the data set.
        clean, private: clean and rewritten documents of the data set in the same order, with
            columns split, label, attribute, text, text_b, context.
        settings: section ``evaluation`` of params.yaml.
        seed: seed of the random streams.
        models: models that exist before the metrics are computed.
    """

    dataset: str
    clean: pa.Table
    private: pa.Table
    settings: EvaluationSettings
    seed: int
    models: Models

    def column(self, name: str) -> list[Any]:
        """Return a column that rewriting leaves unchanged: the split, label or attribute of each
        document.
        """
        values: list[Any] = self.clean.column(name).to_pylist()
        return values

    def stream(self, *names: str) -> np.random.Generator:
        """Return a random generator derived from the seed and these names. All runs get equal
        generators, so that runs differ only by their texts.
        """
        return stream(self.seed, *names)

    @cached_property
    def classified(self) -> tuple[CountedTexts, CountedTexts]:
        """The clean and the rewritten texts in the form that classifiers take, with n-grams counted
        once.
        """
        clean, private = CountedTexts.each(
            classified_texts(self.clean), classified_texts(self.private)
        )
        return clean, private

    @cached_property
    def compared(self) -> tuple[list[str], list[str]]:
        """Randomly drawn clean texts, and the rewritten forms of the same texts; both texts of a
        pair count as texts.
        """
        n_texts = [1 + (second is not None) for second in self._texts(self.clean)[1]]
        rows = drawn(
            n_texts, self.settings.max_texts, self.stream(STREAM, self.dataset, "texts")
        ).tolist()
        pairs = (
            list(zip(*self._texts(table), strict=True)) for table in (self.clean, self.private)
        )
        clean, private = (
            [text for row in rows for text in each[row] if text is not None] for each in pairs
        )
        return clean, private

    @staticmethod
    def _texts(documents: pa.Table) -> tuple[list[str], list[str | None]]:
        return documents.column("text").to_pylist(), documents.column("text_b").to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Description of one number of a metric, as the report shows it.

    Attributes:
        name: unique name among all metrics.
        metric: name of the metric to which the number belongs.
        words: label of the number in rows of tables.
        path: path of the mean and the deviation in the entry; None if the report computes the
            number from other scores.
        glance: key and heading of the column in the table of data sets at a glance; None for no
            column.
        decimals: 1 or 3.
    """

    name: str
    metric: str
    words: str
    path: tuple[str, ...] | None
    glance: tuple[str, str] | None = None
    decimals: int = 3


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Description of a table of the report that corresponds to tables in the papers.

    Attributes:
        name: name for HTML ids.
        caption: caption; the report puts the data set before it and the back end after it.
        scores: the scores of the rows; each mechanism and strategy has one row per score. The last
            score belongs to the metric that has the table.
        source: the table or figure in the papers.
        averaged: whether the papers also print means over data sets.
    """

    name: str
    caption: str
    scores: tuple[Score, ...]
    source: str
    averaged: bool = False


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """Description of a figure that shows one score over epsilon.

    Attributes:
        name: name for HTML ids.
        score: the score.
        words: name of the score in the title.
        y_label: name of the score with its unit.
        levels: whether clean texts and the majority baseline are drawn as horizontal lines.
    """

    name: str
    score: Score
    words: str
    y_label: str
    levels: bool = True


class Metric(ABC):
    """Abstract base class of an evaluation metric.

    Attributes:
        name: name of the metric's entry in the record of a data set.
        title: name of the metric in sentences.
        back_end: the parameter of section evaluation that names the metric's model; empty if the
            model cannot be chosen.
        only_back_end: the model, if it cannot be chosen.
        limits: smallest and largest value.
        settings: names of the metric's settings, each with values of its own; None for a setting
            without a name.
        same: the parts of an entry that rewriting does not change; all runs must have equal parts.
        means: keys of the means in an entry, if the entry has no values by training.
        trained: whether the metric trains models on the texts, so that it may run in a process of
            its own.
        scores, tables, figures: numbers, tables and figures in the report.
        explanation: explanation of the metric, as HTML that continues "Beside that:"; empty if the
            page already explains the metric.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    back_end: ClassVar[str] = ""
    only_back_end: ClassVar[str] = ""
    limits: ClassVar[tuple[float, float]]
    settings: ClassVar[tuple[str | None, ...]] = (None,)
    same: ClassVar[tuple[str, ...]]
    means: ClassVar[tuple[str, ...]] = ("mean",)
    trained: ClassVar[bool] = False
    scores: ClassVar[tuple[Score, ...]] = ()
    tables: ClassVar[tuple[PaperTable, ...]] = ()
    figures: ClassVar[tuple[ScoreFigure, ...]] = ()
    explanation: ClassVar[str] = ""

    @abstractmethod
    def compute(self, texts: DatasetTexts) -> Entry:
        """Compute the metric on one data set and return its entry: numbers only, no class names and
        no texts.
        """

    def values(
        self,
        entry: Entry,
        setting: str | None,  # noqa: ARG002
    ) -> list[tuple[float | None, Sequence[float] | None]]:
        """Return every mean of the metric in one setting, with its values by training if there are
        any. Return an empty list if the entry has no means.
        """
        return [(entry.get(name), None) for name in self.means]

    @abstractmethod
    def summary(self, entry: Entry) -> str:
        """Summarize an entry of the metric in one line for the log of the stage."""

    @abstractmethod
    def note(self, entry: Mapping[str, Any]) -> str:
        """Return the note below a table of this metric: the number of documents behind its numbers,
        and the meaning of ±.
        """

    def standard_error(
        self,
        entry: Mapping[str, Any],  # noqa: ARG002
        mean: float,  # noqa: ARG002
        sd: float | None,  # noqa: ARG002
    ) -> float | None:
        """Return the standard error of a mean of this metric; None if the standard error is
        unknown.
        """
        return None

    def majority(self, entry: Mapping[str, Any], score: Score) -> float | None:  # noqa: ARG002
        """Return the value of a score for the majority-class baseline; None if the score has no
        such baseline.
        """
        return None
