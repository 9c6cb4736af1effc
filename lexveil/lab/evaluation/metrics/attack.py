"""Attack metric (empirical privacy): how well static and adaptive attackers predict an attribute of
a document, such as its author.
"""

from __future__ import annotations

from lexveil.lab.evaluation.metrics.base import EvaluationSettings, PaperTable, Score, ScoreFigure
from lexveil.lab.evaluation.metrics.prediction import SETTINGS, PredictionMetric, classifier_score
from lexveil.lab.evaluation.metrics.utility import UTILITY

STATIC = classifier_score("attack", "static", "macro_f1", "static F1")
ADAPTIVE = classifier_score(
    "attack",
    "adaptive",
    "macro_f1",
    "adaptive F1",
    glance=("attack_adaptive_macro_f1", "Adaptive attack, macro F1"),
)
STATIC_ACCURACY = classifier_score("attack", "static", "accuracy", "static accuracy")
GAIN_GLANCE = ("relative_gain", "Relative gain")
GAIN = Score(
    name="relative_gain", metric="attack", words="relative gain", path=None, glance=GAIN_GLANCE
)


class Attack(PredictionMetric):
    """Attack metric: how well classifiers predict an attribute from rewritten texts, after training
    on clean texts (static attacker) or on rewritten texts (adaptive attacker).
    """

    name = "attack"
    title = "attack"
    target = "attribute"
    settings = tuple(SETTINGS["attack"])
    scores = (STATIC, ADAPTIVE, STATIC_ACCURACY, GAIN)
    tables = (
        PaperTable(
            "attack",
            "task and attackers, macro F1",
            (UTILITY, STATIC, ADAPTIVE, GAIN),
            "CLMLDP Table 4",
        ),
        PaperTable(
            "static",
            "static attacker, accuracy",
            (STATIC_ACCURACY,),
            "1-Diffractor Table 4 and Figure 5",
        ),
    )
    figures = (
        ScoreFigure("attack", ADAPTIVE, "adaptive attack", "adaptive attack (macro F1, 0 to 1)"),
    )

    def max_classes(self, settings: EvaluationSettings) -> int | None:
        """Return the number of most frequent attribute values that the attack uses as classes; an
        attribute may have very many values.
        """
        return settings.max_classes
