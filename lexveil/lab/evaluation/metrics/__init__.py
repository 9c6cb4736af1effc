"""Registry of the evaluation metrics, in the order of the report. A new metric needs one file and
one entry in this module.

The evaluation of a run, the check of the metric's range and its place in the report follow from the
entry.
"""

from __future__ import annotations

from lexveil.lab.evaluation.metrics.attack import Attack
from lexveil.lab.evaluation.metrics.base import Metric
from lexveil.lab.evaluation.metrics.membership import MembershipInference
from lexveil.lab.evaluation.metrics.perplexity import Perplexity
from lexveil.lab.evaluation.metrics.similarity import CosineSimilarity
from lexveil.lab.evaluation.metrics.utility import Utility

METRICS: tuple[Metric, ...] = (
    Utility(),
    Attack(),
    CosineSimilarity(),
    Perplexity(),
    MembershipInference(),
)
BY_NAME = {metric.name: metric for metric in METRICS}
