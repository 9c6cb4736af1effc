"""Report section "answer": which run to choose for which purpose, the trade-off between utility and
recovery of all runs, and sample texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY
from lexveil.lab.report.charts import Chart, score_axis, share_axis, tradeoff
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.evaluation_values import MAJORITY, Values, is_learnt, of_score
from lexveil.lab.report.formatting import Interval, MeanSd
from lexveil.lab.report.records import Key, RunRecovery
from lexveil.lab.report.sections import sentences
from lexveil.lab.report.sections.samples import ShownText, start
from lexveil.readers.bands import CONTENT

LEVELS = (0.05, 0.2, 0.5)  # columns: shares of the content words that an adversary may name
# Smallest acceptable utility of the recommended run, as a share of the gain of clean texts over the
# majority baseline.
ENOUGH = 0.5
TEXTS = 3  # number of texts to show
NAMED = share_axis("named by a reader (% of content words)")
KEPT = score_axis("utility on rewritten texts (macro F1)")

Kept = Mapping[Key, tuple[Interval, MeanSd]]  # share of named words and utility, by run


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Macro F1 scores of one task, or of one attack, for all runs.

    Attributes:
        clean: score on clean texts.
        majority: score of the majority-class baseline.
        runs: score of each run.
    """

    clean: float
    majority: float
    runs: Mapping[Key, float]

    def kept(self, key: Key) -> float:
        """Return the share of utility that a run keeps: its gain over the majority-class baseline,
        divided by the gain of clean texts; never below 0.
        """
        return max(0.0, (self.runs[key] - self.majority) / (self.clean - self.majority))


@dataclass(frozen=True, slots=True)
class Answer:
    """Summary for one data set: utility and recovery of the runs, and which run to choose.

    Attributes:
        utility: scores of the task.
        attack: scores of an attacker who learns from rewritten texts; None if no text has an
            attribute.
        kept: the share of content words that an adversary names and the utility, by run.
        chosen: the best run at each recovery level of ``LEVELS``; None if no run stays within the
            level.
        found: the number of candidates, and the share of source texts that the most successful
            adversary finds among them, by run.
        taken: the run with the smallest share of named words, among the runs that keep ``ENOUGH``
            of the utility; None if no run does.
    """

    dataset: str
    utility: TaskScores
    attack: TaskScores | None
    kept: Kept
    chosen: Mapping[float, Key | None]
    found: Mapping[Key, tuple[int, float]]
    taken: Key | None
    chart: Chart


@dataclass(frozen=True, slots=True)
class LabellessAnswer:
    """Summary for a data set without labels, which uses the similarity of the rewritten texts to
    their sources instead of the utility of a task.

    Attributes:
        attack, found: as in ``Answer``.
        near: the share of words that an adversary names, and the mean cosine of texts and sources,
            by run.
        chosen: at each recovery level of ``LEVELS``, the run whose texts are most similar to their
            sources; None if no run stays within the level.
    """

    dataset: str
    attack: TaskScores | None
    near: Kept
    chosen: Mapping[float, Key | None]
    found: Mapping[Key, tuple[int, float]]


def best(kept: Kept, level: float) -> Key | None:
    """Return the run with the highest utility among the runs in which the adversary names at most
    the share ``level`` of the words; a tie goes to the smaller share. Return None if no run stays
    within the level.
    """
    within = [key for key, (named, _) in kept.items() if named.share <= level]
    return max(within, key=lambda key: (kept[key][1].mean, -kept[key][0].share), default=None)


def taken(kept: Kept, utility: TaskScores) -> Key | None:
    """Return the run in which the adversary names the smallest share of words, among the runs that
    keep enough utility; a tie goes to the higher utility. Return None if no run keeps enough
    utility.
    """
    enough = [key for key in kept if utility.kept(key) >= ENOUGH]
    return min(enough, key=lambda key: (kept[key][0].share, -utility.runs[key]), default=None)


def scores(values: Values, score: Score) -> TaskScores | None:
    """Collect a score for clean texts, the majority-class baseline, and the runs; None if clean
    texts or the majority have no value, or clean texts are not above the majority.
    """
    known = of_score(values, score)
    clean = known.get(CLEAN)
    majority = known.get(MAJORITY)
    if clean is None or majority is None or clean.mean <= majority.mean:
        return None
    runs = {key: value.mean for key, value in known.items() if key not in (CLEAN, MAJORITY)}
    return TaskScores(clean=clean.mean, majority=majority.mean, runs=runs)


def found(runs: Sequence[RunRecovery], dataset: str) -> dict[Key, tuple[int, float]]:
    """Return for each run the largest number of candidate texts, and the share of source texts that
    an adversary finds among them.
    """
    largest: dict[Key, tuple[int, float]] = {}
    for run in runs:
        for name, size, shares in run.linkage:
            if name == dataset and size > largest.get(run.key, (0, 0.0))[0]:
                largest[run.key] = (size, max(shares.values()))
    return largest


def chart(number: int, dataset: str, kept: Kept, clean: float, majority: float) -> Chart:
    """Make a chart of utility over the share of words that an adversary names, with a line for each
    mechanism and strategy, the clean texts, and the majority-class baseline.
    """
    title = f"{dataset}: what the task keeps, and what a reader names"
    # the error bars of all runs would overlap
    middles = {key: (named.share, utility.mean) for key, (named, utility) in kept.items()}
    return tradeoff(
        f"answer-{number}",
        title,
        (NAMED, KEPT),
        middles,
        lambda key: " ".join(key[:2]),
        (1.0, clean),
        (None, majority),
    )


def labelless(report: ReportData, dataset: str, every: Values) -> LabellessAnswer | None:
    """Summarize a data set without labels; return None if no value is known by which to choose a
    run.
    """
    cosines = of_score(every, COSINE)
    named = {run.key: run.share(CONTENT, dataset=dataset) for run in report.recovery}
    near = {
        key: (share, cosines[key])
        for key, share in named.items()
        if share is not None and key in cosines
    }
    if not near:
        return None
    return LabellessAnswer(
        dataset=dataset,
        attack=scores(every, ADAPTIVE),
        near=near,
        chosen={level: best(near, level) for level in LEVELS},
        found=found(report.recovery, dataset),
    )


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "answer": summaries, charts and texts."""
    answers = list[Answer]()
    unlearnt = list[str]()
    without = list[LabellessAnswer]()
    for number, (dataset, every) in enumerate(report.values.items(), 1):
        utility = of_score(every, UTILITY)
        named = {
            run.key: run.share(CONTENT, dataset=dataset)
            for run in report.recovery
            if run.key in utility
        }
        kept = {key: (share, utility[key]) for key, share in named.items() if share is not None}
        clean = utility.get(CLEAN)
        majority = utility.get(MAJORITY)
        if clean is None and (by_texts := labelless(report, dataset, every)) is not None:
            without.append(by_texts)
        if not kept or clean is None or majority is None:
            continue
        if not is_learnt(clean, majority):
            unlearnt.append(dataset)
            continue
        of_task = scores(every, UTILITY)
        if of_task is None:
            continue
        answers.append(
            Answer(
                dataset=dataset,
                utility=of_task,
                attack=scores(every, ADAPTIVE),
                kept=kept,
                chosen={level: best(kept, level) for level in LEVELS},
                found=found(report.recovery, dataset),
                taken=taken(kept, of_task),
                chart=chart(number, dataset, kept, clean.mean, majority.mean),
            )
        )
    careful = [
        key
        for answer in answers
        for key in (answer.taken, answer.chosen[LEVELS[1]], answer.chosen[LEVELS[0]])
        if key
    ]
    careful += [key for answer in without for key in (answer.chosen[LEVELS[1]],) if key]
    shown = next(iter([*careful, *report.keys]), None)
    return {
        "answers": answers,
        "without_label": without,
        "unlearnt": unlearnt,
        "shown": shown,
        "sentences": sentences.rows(report),
        "texts": [
            (start(sample.runs[shown]), ShownText.of(shown[2], sample.runs[shown]))
            for sample in report.samples[:TEXTS]
            if shown is not None
        ],
    }
