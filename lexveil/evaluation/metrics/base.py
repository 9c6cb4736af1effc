"""What a metric of the evaluation is: how it is computed, what values it may take, and what the
report shows of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from lexveil.evaluation.base import Encoder, LanguageModel, classified_texts
from lexveil.evaluation.ngrams import CountedTexts
from lexveil.mechanisms.noise.streams import stream
from lexveil.types import Floats, Rows

STREAM = "evaluate"  # the first name of the random streams of the evaluation

# what is written of one data set, as JSON values; "left_out" is None, or says why it is all
Entry = dict[str, Any]


class EvaluationSettings(Protocol):
    """Section ``evaluation`` of params.yaml, as far as metrics read it."""

    @property
    def classifier(self) -> str:
        """Its name in the registry."""

    @property
    def shuffles(self) -> int:
        """Trainings of each classifier."""

    @property
    def train_share(self) -> float:
        """Share of the train split that each is trained on."""

    @property
    def max_classes(self) -> int:
        """Classes of an attribute that are kept."""

    @property
    def max_texts(self) -> int | None:
        """Texts of a data set that are compared; None for all."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A data set of which there is nothing to measure, and why."""

    reason: str


def drawn(n_texts: Sequence[int], max_texts: int | None, rng: np.random.Generator) -> Rows:
    """Documents drawn at random, as many as have at most ``max_texts`` texts together, at least
    one; ascending.

    Args:
        n_texts: of each of n documents, 1 or 2.
        max_texts: None takes all documents.
    """
    if max_texts is None:
        return np.arange(len(n_texts))
    order = rng.permutation(len(n_texts))
    n_drawn = np.searchsorted(np.cumsum(np.asarray(n_texts)[order]), max_texts, side="right")
    return np.sort(order[: max(int(n_drawn), 1)])


class AttackModel(Protocol):
    """A trained model of membership inference."""

    def score(self, features: Floats) -> Floats:
        """(n,) from the outputs (n, c) of a classifier: the higher, the surer that a text was
        trained on.
        """


@dataclass(frozen=True, slots=True)
class Models:
    """Models that are made before: of metrics that are not ``trained``, and attackers of those that
    are.
    """

    encoder_of: Callable[[Sequence[str]], Encoder] | None = None
    language_model: LanguageModel | None = None
    attackers: Sequence[AttackModel] | None = None


@dataclass(frozen=True)
class DatasetTexts:
    """One data set, as it was given and rewritten, and what it is measured with.

    Attributes:
        clean, private: its documents in the same order: split, label, attribute, text, text_b,
            context.
    """

    dataset: str
    clean: pa.Table
    private: pa.Table
    settings: EvaluationSettings
    seed: int
    models: Models

    def column(self, name: str) -> list[Any]:
        """What rewriting leaves as it is: split, label or attribute of each document."""
        values: list[Any] = self.clean.column(name).to_pylist()
        return values

    def stream(self, *names: str) -> np.random.Generator:
        """A generator of its own: the same for all runs, so that they differ by their texts
        only.
        """
        return stream(self.seed, *names)

    @cached_property
    def classified(self) -> tuple[CountedTexts, CountedTexts]:
        """The clean and the rewritten texts as classifiers take them, their n-grams counted
        once.
        """
        clean, private = CountedTexts.each(
            classified_texts(self.clean), classified_texts(self.private)
        )
        return clean, private

    @cached_property
    def compared(self) -> tuple[list[str], list[str]]:
        """Some texts drawn at random, and their rewritings; each text of a pair is one."""
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
    """One number of a metric, as the report shows it.

    Attributes:
        name: unique among all metrics.
        metric: the name of its metric.
        words: what a row of a table calls it.
        path: where its mean and deviation stand in the entry; None if the report computes it from
            others.
        glance: key and heading of its column in the table of data sets at a glance; None for no
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
    """A table of the papers.

    Attributes:
        name: for ids.
        caption: what it shows; the data set comes before it and the back end after it.
        scores: its rows, one of each per mechanism and strategy; the last is one of the metric that
            has the table.
        source: where the papers have it.
        averaged: whether the papers print means over data sets, too.
    """

    name: str
    caption: str
    scores: tuple[Score, ...]
    source: str
    averaged: bool = False


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """A figure of one score over epsilon.

    Attributes:
        name: for ids.
        words: the score, in the title.
        y_label: the score with its unit.
        levels: whether clean texts and the majority baseline are drawn as lines across.
    """

    name: str
    score: Score
    words: str
    y_label: str
    levels: bool = True


class Metric(ABC):
    """A metric of the evaluation.

    Attributes:
        name: of its entry in the record of a data set.
        title: in sentences.
        back_end: the parameter of section evaluation that names its model; empty if there is no
            choice.
        only_back_end: the model, if there is no choice.
        limits: smallest and largest value.
        settings: what it is measured in, each with values of its own; None for one that has no
            name.
        same: the parts of an entry that rewriting does not change, so that they are the same in all
            runs.
        means: of its entry, where these have no values by training.
        trained: whether it trains models on the texts, and so may be computed in a process of its
            own.
        scores, tables, figures: what the report shows of it.
        explanation: what it is, as HTML that goes on after "Beside that:"; empty where the page
            says it itself.
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
        """What is written of one data set: numbers only, no class and no text."""

    def values(
        self,
        entry: Entry,
        setting: str | None,  # noqa: ARG002
    ) -> list[tuple[float | None, Sequence[float] | None]]:
        """Every mean in one setting, and its values by training where it has some; empty if they
        are not there.
        """
        return [(entry.get(name), None) for name in self.means]

    @abstractmethod
    def summary(self, entry: Entry) -> str:
        """One line for the log of the stage."""

    @abstractmethod
    def note(self, entry: Mapping[str, Any]) -> str:
        """How many documents stand behind the numbers of a table, and what ± means."""

    def standard_error(
        self,
        entry: Mapping[str, Any],  # noqa: ARG002
        mean: float,  # noqa: ARG002
        sd: float | None,  # noqa: ARG002
    ) -> float | None:
        """Of a mean; None if it is not known."""
        return None

    def majority(self, entry: Mapping[str, Any], score: Score) -> float | None:  # noqa: ARG002
        """The majority-class baseline of a score; None where there is none."""
        return None
