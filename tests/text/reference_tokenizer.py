"""The tokenizer a second time, by regular expressions, slow and easy to read: what the scanner is
compared with."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lexveil.core.text.kernels.characters import MARKS_AFTER
from lexveil.core.text.languages import DEFAULT, language_of
from lexveil.core.text.languages.base import LONGEST_ABBREVIATION, Language
from lexveil.core.text.normal_forms import normal_form
from lexveil.core.text.tokenize import tokenize_texts

_LETTER = rf"[^\W_]|[{MARKS_AFTER}]"
_WORD = rf"(?:{_LETTER})+"
_JOINER = r"['’\-‐‑]"
_APOSTROPHE = "['’]"
_BEFORE_WORDS, _WORDS = (
    r"""
      (?:https?://|www\.)[^\s<>"]*[^\s<>"'’”.,;:!?)\]}]   # a URL, without the punctuation after it
    | [\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+                  # an e-mail address; bounded, so linear
    | [@\#][^\W\d_]\w*                                     # a handle or a tag
    | \d+(?:[.,:]\d+)+                                     # 3.14  10,000  12:30
    | (?:[^\W\d_]\.){2,}                                 # u.s.  e.g.
    """,
    rf"""
    | {_WORD}(?:{_JOINER}{_WORD})*                         # a word; don't, well-known are one each
    | \.{{2,}}|-{{2,}}|!{{2,}}|\?{{2,}}|\*{{2,}}|={{2,}}|~{{2,}}|_{{2,}}
    | \S
    """,
)


@functools.cache
def _token(language: str) -> re.Pattern[str]:
    """The expression of a token: where the language cuts at apostrophes, these alternatives come
    before the word."""
    rules, cuts = language_of(language), ""
    if rules.elisions:  # l'homme: l' and homme
        cuts += rf"| {_any_case(rules.elisions)}{_APOSTROPHE}(?={_LETTER})"
    if rules.trailing:  # un po' di: po'
        cuts += rf"| {_any_case(rules.trailing)}{_APOSTROPHE}(?!{_LETTER})"
    if rules.leading:  # 't huis: 't; 's-Hertogenbosch
        cuts += rf"| {_APOSTROPHE}{_any_case(rules.leading)}(?!{_LETTER})(?:{_JOINER}{_WORD})*"
    return re.compile(f"{_BEFORE_WORDS}{cuts}{_WORDS}", re.VERBOSE)


def _any_case(words: Iterable[str]) -> str:
    """An expression of these words in letters of any case, and of no other character that folds to
    one of them."""
    either = ("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in sorted(words))
    return f"(?:{'|'.join(either)})"


_BOUNDARY = re.compile("[.!?…][\"'”’)\\]]*\\s+|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]\\s*")
_LAST_WORD = re.compile(r"([^\W\d_]+)\Z")
_ORDINAL = re.compile(r"(?:\A|\s)\d{1,2}\Z")


def sentence_spans(text: str, language: str = DEFAULT) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence, in order; together they cover the whole text."""
    start, rules = 0, language_of(language)
    for match in _BOUNDARY.finditer(text):
        at = match.start()
        if text[at] == "." and not _ends_sentence(text, at, rules):
            continue
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def _ends_sentence(text: str, at: int, rules: Language) -> bool:
    """Return whether the full stop at ``at`` ends a sentence. It does not after an initial (``J.``)
    or an abbreviation (``Dr.``)."""
    word = _LAST_WORD.search(text, max(0, at - LONGEST_ABBREVIATION), at)
    if word is None:
        return not (rules.has_ordinals and _ORDINAL.search(text[max(0, at - 3) : at]))
    last = word[1]
    if len(last) == 1 and last.isupper():
        return last == rules.alone
    return folded(last) not in rules.abbreviations


def folded(word: str) -> str:
    """A word in lower case as abbreviations are compared: capitals beyond Latin-1 are in none, and
    stay."""
    return "".join(letter.lower() if letter <= "\xff" else letter for letter in word)


def sentences(text: str, language: str = DEFAULT) -> list[list[str]]:
    """Return the normal forms of each sentence, without sentences that have no token."""
    find = _token(language).findall
    split = (
        [*map(normal_form, find(text, start, end))] for start, end in sentence_spans(text, language)
    )
    return [tokens for tokens in split if tokens]


def token_spans(text: str, language: str = DEFAULT) -> list[list[tuple[int, int]]]:
    """Character spans (start, end) of the same tokens, sentence by sentence."""
    find = _token(language).finditer
    split = (
        [match.span() for match in find(text, start, end)]
        for start, end in sentence_spans(text, language)
    )
    return [spans for spans in split if spans]


def assert_same(texts: Sequence[str], array: pa.Array | None = None, language: str = "en") -> int:
    """Compare the scanner with the expressions in all, and see that no text is lost; return the
    number of tokens."""
    array = pa.array(texts, pa.string()) if array is None else array
    expected = [sentences(text, language) for text in texts]
    flat = [form for text in expected for sentence in text for form in sentence]
    spans = [
        [span for sentence in token_spans(text, language) for span in sentence] for text in texts
    ]
    found = tokenize_texts(array, language, spans=True)
    words = found.words.to_pylist()
    assert words == list(dict.fromkeys(flat))
    assert [words[number] for number in found.ids.tolist()] == flat
    assert found.sentence_sizes.tolist() == [
        len(sentence) for text in expected for sentence in text
    ]
    assert found.sentences_per_text.tolist() == [len(text) for text in expected]
    assert found.spans.tolist() == [list(span) for of_text in spans for span in of_text]
    for text, of_text in zip(texts, spans, strict=True):
        assert "".join(text[start:end] for start, end in of_text) == "".join(text.split())
    return len(flat)
