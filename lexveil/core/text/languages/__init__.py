"""Languages with known function words, abbreviations and apostrophe rules, one module each.

Texts in any other language are tokenized by the rules that all languages share. Such a language has
no function words, so all of its words are perturbed.
"""

from __future__ import annotations

import functools

from lexveil.core.text.languages.base import Language
from lexveil.core.text.languages.dutch import DUTCH
from lexveil.core.text.languages.english import ENGLISH
from lexveil.core.text.languages.french import FRENCH
from lexveil.core.text.languages.german import GERMAN
from lexveil.core.text.languages.italian import ITALIAN
from lexveil.core.text.languages.portuguese import PORTUGUESE
from lexveil.core.text.languages.spanish import SPANISH

LANGUAGES = {
    one.code: one for one in (GERMAN, ENGLISH, SPANISH, FRENCH, ITALIAN, DUTCH, PORTUGUESE)
}
DEFAULT = ENGLISH.code

# Elided words: an output text has no space after them, for every language of a model.
ELIDED = frozenset(f"{word}'" for one in LANGUAGES.values() for word in one.elisions)


@functools.cache
def language_of(code: str) -> Language:
    """Return the language of a code such as ``de`` or ``de-AT``; for a code that is not in
    ``LANGUAGES``, a language without word lists.
    """
    primary = code.lower().replace("_", "-").partition("-")[0]
    return LANGUAGES.get(primary) or Language(primary, primary)
