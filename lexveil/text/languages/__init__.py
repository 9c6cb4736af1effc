"""The languages whose function words, abbreviations and apostrophes are known; one module each.

Texts of another language are cut by what all of them share, and have no function words: all of
their words are perturbed.
"""

from __future__ import annotations

import functools

from lexveil.text.languages.base import Language
from lexveil.text.languages.dutch import DUTCH
from lexveil.text.languages.english import ENGLISH
from lexveil.text.languages.french import FRENCH
from lexveil.text.languages.german import GERMAN
from lexveil.text.languages.italian import ITALIAN
from lexveil.text.languages.portuguese import PORTUGUESE
from lexveil.text.languages.spanish import SPANISH

LANGUAGES = {
    one.code: one for one in (GERMAN, ENGLISH, SPANISH, FRENCH, ITALIAN, DUTCH, PORTUGUESE)
}
DEFAULT = ENGLISH.code

# As a text is written again: after these there is no space, whichever language the output's model
# is of.
ELIDED = frozenset(f"{word}'" for one in LANGUAGES.values() for word in one.elisions)


@functools.cache
def language_of(code: str) -> Language:
    """The language of a code such as ``de`` or ``de-AT``; of another language than ``LANGUAGES``,
    one without words.
    """
    primary = code.lower().replace("_", "-").partition("-")[0]
    return LANGUAGES.get(primary) or Language(primary, primary)
