"""What the tokenizer and the budget strategies know of a language."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 8  # letters of what the scanner compares


@dataclass(frozen=True, slots=True)
class Language:
    """Closed word classes and the rules of apostrophes and full stops of one language.

    All words are in lower case with straight apostrophes. Abbreviations and what stands before or
    after an apostrophe have at most ``LONGEST`` letters of Latin-1.

    Attributes:
        code: ISO 639-1.
        name: in English.
        function_words: what strategy S1 may leave as it is, so that no word with content may be
            among them.
        connectors: words that no collocation contains.
        abbreviations: words after which a full stop ends no sentence.
        elisions: what is a token of its own with the apostrophe after it, where a letter follows:
            ``l`` of l'homme.
        leading: what is a token of its own with the apostrophe before it: ``t`` of 't.
        trailing: what is a token with the apostrophe after it where no letter follows: ``po`` of
            po'.
        alone: a capital that is a word, so that a full stop after it may end a sentence; other
            capitals are initials.
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
