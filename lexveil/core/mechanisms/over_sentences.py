"""Mechanisms that draw sentences of a public sentence bank for query vectors.

TEM has a sampler of its own for sentences, ``SentenceDraws``. The mechanisms that add noise accept
any vector as input, not only the vectors of a vocabulary; their output is a sentence of the bank
near the noisy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexveil.base.errors import ParameterError
from lexveil.base.types import Vectors
from lexveil.core.mechanisms.base import Mechanism
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.mechanisms.vickrey import Vickrey

NOISY: dict[str, type[Madlib]] = {
    mechanism.name: mechanism for mechanism in (Madlib, Mahalanobis, Vickrey)
}
OF_VECTORS = {  # the distance in the guarantee of each mechanism
    SentenceDraws.name: SentenceDraws.metric,
    Madlib.name: SentenceDraws.metric,
    Mahalanobis.name: "regularized Mahalanobis distance of sentence vectors, "
    "sqrt((φ-φ')ᵀ(λΣ+(1-λ)I)^{-1}(φ-φ')), Σ the covariance of the bank's vectors scaled to trace p",
    Vickrey.name: SentenceDraws.metric,
}


def sentence_mechanism(
    name: str, vectors: Vectors, radius: float, parameters: Mapping[str, Any]
) -> Mechanism:
    """Build a mechanism that draws sentences from the vectors of a sentence bank.

    Args:
        radius: upper bound on the length of the vectors of the bank and of texts.
        parameters: the parameters of the mechanism.

    Raises:
        ParameterError: if a parameter is invalid for sentences.
    """
    if name == SentenceDraws.name:
        return SentenceDraws(vectors, radius, **parameters)
    if parameters.get("exclude_input"):
        raise ParameterError(
            "vickrey.exclude_input leaves the input out of the candidates, but the input is a "
            "text and not a sentence of the bank; set it to false"
        )
    mechanism = NOISY[name](vectors, **parameters)
    mechanism.metric = OF_VECTORS[name]
    mechanism.unit = SentenceDraws.unit
    mechanism.sampled = SentenceDraws.sampled
    return mechanism
