"""Utility metric: how well the label of a document can be predicted by a classifier that was
trained on rewritten texts.
"""

from __future__ import annotations

from lexveil.lab.evaluation.metrics.base import PaperTable, Score, ScoreFigure
from lexveil.lab.evaluation.metrics.prediction import SETTINGS, PredictionMetric, classifier_score

UTILITY = classifier_score(
    "utility",
    "private",
    "macro_f1",
    "utility F1",
    glance=("utility_macro_f1", "Utility, macro F1"),
)
UTILITY_MICRO = classifier_score("utility", "private", "micro_f1", "utility")
ON_CLEAN = classifier_score("utility", "clean", "macro_f1", "utility on clean texts")
ON_CLEAN_MICRO = classifier_score("utility", "clean", "micro_f1", "utility on clean texts")
LOSS = Score(name="utility_loss", metric="utility", words="utility loss", path=None)


class Utility(PredictionMetric):
    """Utility metric: classifiers that are trained on rewritten texts and scored on rewritten and
    on clean texts.
    """

    name = "utility"
    title = "utility"
    target = "label"
    settings = tuple(SETTINGS["utility"])
    scores = (UTILITY, UTILITY_MICRO, ON_CLEAN, ON_CLEAN_MICRO)
    tables = (
        PaperTable(
            "utility",
            "utility, micro F1 (accuracy) on rewritten texts",
            (UTILITY_MICRO,),
            "CLMLDP Tables 3, 5 and 6; 1-Diffractor Tables 1 and 3",
        ),
        PaperTable(
            "on-clean",
            "utility, micro F1 (accuracy) on clean texts",
            (ON_CLEAN_MICRO,),
            "TEM Figure 1a",
        ),
    )
    figures = (ScoreFigure("utility", UTILITY, "utility", "utility (macro F1, 0 to 1)"),)
