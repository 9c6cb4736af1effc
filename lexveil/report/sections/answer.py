"""The answer: which run to take for what, what is kept and given away by all of them, and texts to
read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lexveil.config import CLEAN
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.recovery.bands import CONTENT
from lexveil.report.charts import Chart, score_axis, share_axis, tradeoff
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import MAJORITY, is_learnt, of_score, one_kind
from lexveil.report.formatting import Interval, MeanSd
from lexveil.report.records import Key
from lexveil.report.sections.samples import ShownText, start

LEVELS = (0.05, 0.2, 0.5)  # shares of the content words that a reader may name
TEXTS = 3  # to read
NAMED = share_axis("named by a reader (% of content words)")
KEPT = score_axis("utility on rewritten texts (macro F1)")

Kept = Mapping[Key, tuple[Interval, MeanSd]]  # by run, what a reader names and what the task keeps


@dataclass(frozen=True, slots=True)
class Answer:
    """What follows for one data set.

    Attributes:
        clean: the utility of clean texts.
        chosen: the best run at each of ``LEVELS``; None where no run keeps it.
    """

    dataset: str
    clean: float
    kept: Kept
    chosen: Mapping[float, Key | None]
    chart: Chart


def best(kept: Kept, level: float) -> Key | None:
    """Of the runs of which a reader names no more, that with the highest utility; of equal ones the
    smaller share.
    """
    within = [key for key, (named, _) in kept.items() if named.share <= level]
    return max(within, key=lambda key: (kept[key][1].mean, -kept[key][0].share), default=None)


def chart(number: int, dataset: str, kept: Kept, clean: float, majority: float) -> Chart:
    """Utility over what is named, a line for each mechanism and strategy; with what clean texts
    give, and none.
    """
    title = f"{dataset}: what the task keeps, and what a reader names"
    # bars of all would touch
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


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    answers, unlearnt = list[Answer](), list[str]()
    for number, (dataset, every) in enumerate(report.values.items(), 1):
        utility = of_score(one_kind(every), UTILITY)
        named = {
            run.key: run.share(CONTENT, dataset=dataset)
            for run in report.recovery
            if run.key in utility
        }
        kept = {key: (share, utility[key]) for key, share in named.items() if share is not None}
        clean, majority = utility.get(CLEAN), utility.get(MAJORITY)
        if not kept or clean is None or majority is None:
            continue
        if not is_learnt(clean, majority):
            unlearnt.append(dataset)
            continue
        chosen = {level: best(kept, level) for level in LEVELS}
        drawn = chart(number, dataset, kept, clean.mean, majority.mean)
        answers.append(Answer(dataset, clean.mean, kept, chosen, drawn))
    careful = [
        key
        for answer in answers
        for level in (LEVELS[1], LEVELS[0])
        if (key := answer.chosen[level])
    ]
    shown = next(iter([*careful, *report.keys]), None)
    return {
        "answers": answers,
        "unlearnt": unlearnt,
        "shown": shown,
        "texts": [
            (start(sample.runs[shown]), ShownText.of(shown[2], sample.runs[shown]))
            for sample in report.samples[:TEXTS]
            if shown is not None
        ],
    }
