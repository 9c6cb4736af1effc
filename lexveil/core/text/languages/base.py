"""``Language``: the word lists and rules of a language, which the tokenizer and the budget
strategies use.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_ABBREVIATION = 8  # letters of the longest word that the scanner can compare


@dataclass(frozen=True, slots=True)
class Language:
    """Closed word classes of one language, and its rules for apostrophes and full stops.

    All words are in lower case with straight apostrophes. Abbreviations, and the parts of a word
    before or after an apostrophe, have at most ``LONGEST_ABBREVIATION`` letters of Latin-1.

    Attributes:
        code: ISO 639-1 code.
        name: English name of the language.
        function_words: words that strategy S1 may leave unperturbed; content words must not be
            among them.
        connectors: words that no collocation contains.
        abbreviations: words after which a full stop ends no sentence.
        elisions: words that form one token with a following apostrophe if a letter comes next, such
            as ``l`` in l'homme.
        leading: words that form one token with an apostrophe before them, such as ``t`` in 't.
        trailing: words that form one token with a following apostrophe if no letter comes next,
            such as ``po`` in po'.
        alone: capital letter that is a word in itself, so that a full stop after it may end a
            sentence; other single capitals are initials.
        has_ordinals: whether a full stop after a number of one or two digits makes an ordinal, so
            that the full stop ends no sentence.
    """

    code: str
    name: str
    function_words: frozenset[str] = frozenset()
    connectors: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()
    elisions: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset()
    trailing: frozenset[str] = frozenset()
    alone: str = ""
    has_ordinals: bool = False
