"""The mechanisms that draw sentences of a bank for query vectors.

TEM has a sampler of its own here, ``SentenceDraws``. Those that add noise take any vector: the rows
of a vocabulary are a special case, and what comes out is near to the noisy vector in the bank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexveil.base.errors import ParameterError
from lexveil.base.types import Vectors
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.mechanisms.vickrey import Vickrey

SentenceMechanism = SentenceDraws | Madlib
NOISY: dict[str, type[Madlib]] = {
    mechanism.name: mechanism for mechanism in (Madlib, Mahalanobis, Vickrey)
}
OF_VECTORS = {  # the distance of the guarantee of each
    SentenceDraws.name: SentenceDraws.metric,
    Madlib.name: SentenceDraws.metric,
    Mahalanobis.name: "regularized Mahalanobis distance of sentence vectors, "
    "sqrt((φ-φ')ᵀ(λΣ+(1-λ)I)^{-1}(φ-φ')), Σ the covariance of those of the bank scaled to trace p",
    Vickrey.name: SentenceDraws.metric,
}


def sentence_mechanism(
    name: str, vectors: Vectors, radius: float, parameters: Mapping[str, Any]
) -> SentenceMechanism:
    """Return a mechanism over the vectors of a bank.

    Args:
        radius: no vector of the bank and of a text is longer.
        parameters: the parameters of the mechanism.

    Raises:
        ParameterError: if a parameter does not suit sentences.
    """
    if name == SentenceDraws.name:
        return SentenceDraws(vectors, radius, **parameters)
    if parameters.get("exclude_input"):
        raise ParameterError(
            "vickrey.exclude_input leaves the input out of the candidates, and a text is no "
            "sentence of the bank; set it to false"
        )
    mechanism = NOISY[name](vectors, **parameters)
    mechanism.metric = OF_VECTORS[name]
    mechanism.unit = SentenceDraws.unit
    mechanism.sampled = SentenceDraws.sampled
    return mechanism
