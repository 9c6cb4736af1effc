"""The metrics of the evaluation, in the order of the report. A new one is its file and its entry
here.

The evaluation of a run, the check of its range and its place in the report follow from it.
"""

from __future__ import annotations

from lexveil.evaluation.metrics.attack import Attack
from lexveil.evaluation.metrics.base import Metric
from lexveil.evaluation.metrics.membership import MembershipInference
from lexveil.evaluation.metrics.perplexity import Perplexity
from lexveil.evaluation.metrics.similarity import CosineSimilarity
from lexveil.evaluation.metrics.utility import Utility

METRICS: tuple[Metric, ...] = (
    Utility(),
    Attack(),
    CosineSimilarity(),
    Perplexity(),
    MembershipInference(),
)
BY_NAME = {metric.name: metric for metric in METRICS}
