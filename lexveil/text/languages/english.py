"""English: the words of function_words.py, and the abbreviations that the model that ships was cut with."""

from __future__ import annotations

from lexveil.text.function_words import CONNECTORS, STOP_WORDS
from lexveil.text.languages.base import Language

_ABBREVIATIONS = """
mr mrs ms dr prof rev hon gen col sgt capt lt sen rep gov pres st mt ft jr sr inc co corp ltd bros vs etc no vol
fig dept est approx jan feb mar apr jun jul aug sep sept oct nov dec
"""

ENGLISH = Language(
    code="en",
    name="English",
    function_words=STOP_WORDS,
    connectors=CONNECTORS,
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    alone="I",
)
