"""``Language``: the word lists and rules of a language for the tokenizer and the
budget strategies.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_ABBREVIATION = 8  # letters of the longest word that the scanner can compare


@dataclass(frozen=True, slots=True)
class Language:
    """Closed word classes and the rules of apostrophes and full stops of one language.

    All words are in lower case with straight apostrophes. Abbreviations, and the parts of a word
    before or after an apostrophe, have at most ``LONGEST_ABBREVIATION`` letters of Latin-1.

    Attributes:
        code: ISO 639-1 code.
        name: English name of the language.
        function_words: words that strategy S1 may leave unperturbed; no word with content may be
            among them.
        connectors: words that no collocation contains.
        abbreviations: words after which a full stop ends no sentence.
        elisions: words that form a token of their own with the apostrophe after them, where a
            letter follows: ``l`` of l'homme.
        leading: words that form a token of their own with the apostrophe before them: ``t`` of 't.
        trailing: words that form a token with the apostrophe after them, where no letter follows:
            ``po`` of po'.
        alone: a capital letter that is a word, so that a full stop after it may end a sentence;
            other capitals are initials.
        has_ordinals: whether a full stop after a number of one or two digits makes an ordinal,
            which ends no sentence.
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
