"""What other stages wrote, as the report reads it: plans, runs, plausible deniability statistics and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.errors import CheckFailed
from lexveil.levels import Level, epsilon_in
from lexveil.report.formatting import Interval

SEGMENTATIONS = ("word", "gst", "mst")


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """One plan, one data set.

    Attributes:
        epsilon: base epsilon, in 1 / distance of the mechanism.
        n_texts: of its documents; a pair has two.
        n_words: words of all its texts, punctuation not counted.
        n_tokens: what the strategy cuts them into.
        n_perturbed: tokens that get noise.
        budget: of each of its texts.
        epsilon_planned: what all its texts together spend.
    """

    strategy: str
    epsilon: float
    dataset: str
    n_documents: int
    n_texts: int
    n_words: int
    n_tokens: int
    n_perturbed: int
    budget: float
    epsilon_planned: float

    @property
    def words_per_text(self) -> float:
        """Average number of words."""
        return self.n_words / self.n_texts

    @property
    def per_token(self) -> float | None:
        """Mean epsilon of a token that gets noise."""
        return self.epsilon_planned / self.n_perturbed if self.n_perturbed else None

    @property
    def spent(self) -> float:
        """Mean epsilon spent per text."""
        return self.epsilon_planned / self.n_texts


def budget_mean(totals: Sequence[PlanTotals], strategy: str, epsilon: float) -> float:
    """Mean budget over all texts, rounded so that the order of additions does not show."""
    own = [plan for plan in totals if (plan.strategy, plan.epsilon) == (strategy, epsilon)]
    n_texts = sum(plan.n_texts for plan in own)
    return round(sum(plan.budget * plan.n_texts for plan in own) / n_texts, 9) if n_texts else 0.0


@dataclass(frozen=True, slots=True)
class RunResult:
    """One output of the grid, or the clean baseline (mechanism and strategy "none", epsilon 0).

    Attributes:
        metrics: its metrics.json.
        record: its record.json.
        budget_mean: mean document budget over its texts, in 1 / distance of the mechanism; None for
            the baseline, and at a level, where each text spends what its tokens get.
    """

    mechanism: str
    strategy: str
    epsilon: float
    metrics: Mapping[str, Any]
    record: Mapping[str, Any]
    budget_mean: float | None

    @property
    def key(self) -> tuple[str, str, float]:
        """What names it."""
        return self.mechanism, self.strategy, self.epsilon

    @property
    def is_baseline(self) -> bool:
        """Whether nothing was done to the text."""
        return self.mechanism == "none"


@dataclass(frozen=True, slots=True)
class RunRecovery:
    """What a best-informed reader gets back of one run.

    Attributes:
        record: mechanism, strategy, epsilon, language_model; all and datasets: entries by band, with n and the shares
            of ``lexveil.recovery.measured``.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str, float]:
        """What names the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), epsilon_in(self.record)

    @property
    def bands(self) -> list[str]:
        """All words, the frequency bands, and the words of a list if there is one."""
        return list(self.record["all"])

    def n_words(self, band: str, dataset: str | None = None) -> int:
        """Replaced words."""
        return int(self._entry(band, dataset).get("n", 0))

    def share(self, band: str, which: str = "recovered", dataset: str | None = None) -> Interval | None:
        """A share of all data sets or one; None where there is no word or it was not measured.

        Args:
            which: unchanged, by_word, by_context, without_output; or recovered: by context, without a language model
                by the word.
        """
        entry = self._entry(band, dataset)
        if which == "recovered":
            which = "by_context" if entry.get("by_context") else "by_word"
        found = entry.get(which)
        return None if not found or found["share"] is None else Interval(found["share"], found["low"], found["high"])

    def _entry(self, band: str, dataset: str | None) -> Mapping[str, Any]:
        entries = self.record["all"] if dataset is None else self.record["datasets"].get(dataset, {})
        entry: Mapping[str, Any] = entries.get(band, {})
        return entry


@dataclass(frozen=True, slots=True)
class MechanismDeniability:
    """The statistics of one mechanism in one segmentation.

    Attributes:
        file: where they lie, as messages call it.
        record: mechanism, segmentation, n_vocabulary, n_shared, word_rows, statistics (one row per epsilon).
    """

    file: str
    record: Mapping[str, Any]

    @property
    def mechanism(self) -> str:
        """Which mechanism."""
        return str(self.record["mechanism"])

    @property
    def segmentation(self) -> str:
        """Which segmentation."""
        return str(self.record["segmentation"])

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row per epsilon, ascending."""
        return list(self.record["statistics"])


def has_levels(runs: Sequence[RunResult | RunRecovery]) -> bool:
    """Whether some are made at levels of recovery."""
    return any(isinstance(run.key[2], Level) for run in runs)


def key_columns(*, with_levels: bool) -> list[str]:
    """Names of the columns of a CSV file that name a run."""
    return ["mechanism", "strategy", "epsilon", *(["level"] if with_levels else [])]


def key_cells(key: tuple[str, str, float], *, with_levels: bool) -> tuple[str | float | None, ...]:
    """What stands in ``key_columns``; the epsilon of a run at a level is that which was found for it."""
    mechanism, strategy, at = key
    epsilon, level = (at.epsilon, at.share) if isinstance(at, Level) else (at, None)
    return (mechanism, strategy, epsilon, *((level,) if with_levels else ()))


def require_same_words(measured: Sequence[MechanismDeniability]) -> None:
    """See that within a segmentation all statistics are of the same words.

    Raises:
        CheckFailed: if they are not, and so cannot be compared.
    """
    first: dict[str, MechanismDeniability] = {}
    for record in measured:
        known = first.setdefault(record.segmentation, record)
        if known.record["word_rows"] != record.record["word_rows"]:
            raise CheckFailed(
                f"{known.file} and {record.file} are of different words, so they cannot be compared. Run "
                "`dvc repro --force measure_deniability`"
            )


@dataclass(frozen=True, slots=True)
class Check:
    """The record of one suite.

    Attributes:
        file: where it lies, as messages call it.
        record: suite, success, expectations with checked and unexpected.
    """

    file: str
    record: Mapping[str, Any]
