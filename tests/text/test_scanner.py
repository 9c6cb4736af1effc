"""The scanner gives what the regular expressions give: the same tokens, sentences, normal forms and spans."""

import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexveil.data.default import articles, polarity
from lexveil.errors import RequestError
from lexveil.text import tokenize
from lexveil.text.kernels import characters
from lexveil.text.languages import LANGUAGES
from lexveil.text.languages.base import LONGEST
from lexveil.text.normal_forms import normal_form
from lexveil.text.tokenize import tokenize_texts
from tests.text.reference_tokenizer import sentences, token_spans

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# `TOKENIZE_EXAMPLES=20000 pytest tests/text/test_scanner.py` looks longer than every run has to.
EXAMPLES = int(os.environ.get("TOKENIZE_EXAMPLES", "100"))

PIECES = (
    # the beginnings and parts of every alternative of the token expression
    "http://", "https://", "HTTP://", "http:/", "htt", "ww", "www.", "www", "@", "#", "_", "__", "a_b", "x@y.z",
    "+", "-", "--",
    ".", "..", "...", "!", "!!", "?", "?!", "*", "**", "=", "==", "~", "~~", ",", ":", ";", "<", ">", '"', "'", "(",
    ")",
    "[", "]", "{", "}", "/", "&", "$", "0", "1", "12", "3.14", "10,000", "12:30", "1.", "u.s.", "U.S", "e.g.",
    "a.b", "I.",
    "I", "J", "i", "Dr", "dr", "mr.", "Approx.", "APPROX", "etc", "Inc", "sept", "no", "don't", "well-known",
    "Hello", "ab", "Z",
    # white space and line breaks of every kind, and control characters that are neither
    " ", "  ", "\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2003",
    "\u2028",
    "\u2029", "\u3000", "\0", "\x01", "\x7f", "\x84", "\u200b", "\ufeff",
    # beyond ASCII: marks, joiners, letters of every width in bytes, of both cases, composed and not, and digits
    "’", "‘", "“", "”", "„", "ʼ", "–", "—", "‐", "‑", "…", "……", "é", "É", "e\u0301", "\u0301", "\u200d", "\ufe0f",
    "ß", "ẞ", "İ",
    "ı", "ſ", "\u212a", "\u212b", "Σ", "ΑΣ", "AΣ", "σ", "ς", "ǅ", "Ж", "я", "ש", "ا", "ก", "あ", "漢", "𝐀", "𐐀",
    "😀", "👩\u200d👧", "٣",
    "۴", "²", "½", "Ⅷ", "＿", "‿", "\ufffd", "\U0010ffff", "\u0378", "\u037e", "\u1fef",
    # the bound of an e-mail address's first part, in characters and in bytes
    "a" * 63, "a." * 32, "é" * 64, "-" * 65, "漢" * 63,
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
ANY = st.text(max_size=120) | st.text(alphabet="aB1 .,!?'’\"-_@#/:\n\t…é\u0301😀", max_size=120)
MAIL = st.text(alphabet="aé1._+-@ ", max_size=150) | st.builds(
    "{}{}@{}".format,
    st.sampled_from(["", " ", "a@", "#", "é.", "www."]),
    st.text("a漢.", min_size=60, max_size=70),
    TEXTS,
)
STOPS = st.lists(
    st.sampled_from(["Dr", "I", "J", "É", "ab", "5", "ǅ", ".", ".", "!", "…", "'", "”", ")", " ", " ", "\n", "\u2028"]),
    max_size=40,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("letter", ["a", "é", "漢", "𝐀"])
def test_the_bound_of_mail_addresses_is_in_characters(letter: str) -> None:
    """64 of them, whether they take one byte each or four."""
    for size in (63, 64, 65, 128, 129):
        assert_same([f"{letter * size}@b.c", f"a {letter * size}@b.c @", f"{letter}.{letter * size}@b.c"])
    tokens = tokenize_texts(pa.array([f"{letter * 64}@b.c", f"{letter * 65}@b.c"]))
    assert tokens.sentence_sizes.tolist() == [1, 4]  # one address; a word, a handle, a full stop and a word


def assert_same(texts: list[str], array: pa.Array | None = None, language: str = "en") -> int:
    """Compare everything with the expressions, and see that no text is lost; return the number of tokens."""
    array = pa.array(texts, pa.string()) if array is None else array
    expected = [sentences(text, language) for text in texts]
    flat = [form for text in expected for sentence in text for form in sentence]
    spans = [[span for sentence in token_spans(text, language) for span in sentence] for text in texts]
    found = tokenize_texts(array, language, spans=True)
    words = found.words.to_pylist()
    assert words == list(dict.fromkeys(flat))
    assert [words[number] for number in found.ids.tolist()] == flat
    assert found.sentence_sizes.tolist() == [len(sentence) for text in expected for sentence in text]
    assert found.sentences_per_text.tolist() == [len(text) for text in expected]
    assert found.spans.tolist() == [list(span) for of_text in spans for span in of_text]
    for text, of_text in zip(texts, spans, strict=True):
        assert "".join(text[start:end] for start, end in of_text) == "".join(text.split())
    return len(flat)


# What languages cut at: every word before and after an apostrophe, abbreviations, ordinals, and what is nearly one.
CUTS = sorted({word for one in LANGUAGES.values() for word in (*one.elisions, *one.leading, *one.trailing)})
SHORT = sorted({word for one in LANGUAGES.values() for word in one.abbreviations})
AROUND = st.lists(
    st.sampled_from(CUTS + [word.upper() for word in CUTS])
    | st.sampled_from(SHORT + [word.title() for word in SHORT])
    | st.sampled_from(
        ["'", "'", "’", "‘", "-", ".", ".", ". ", " ", "\n", "3", "31", "310", "٣", "h", "homme", "é", "É"]
    )
    | st.sampled_from(
        ["\u0301", "\u212a", "ſ", "İ", "ß", "ÿ", "Ÿ", "œ", "漢", '"', "«", "»", "¿", "¡", "a@b.c", "_", "I"]
    ),
    max_size=25,
).map("".join)


@pytest.mark.parametrize("language", [*LANGUAGES, "sv"])
@settings(max_examples=EXAMPLES)
@given(texts=st.lists(AROUND | TEXTS | STOPS, max_size=4))
def test_every_language(language: str, texts: list[str]) -> None:
    assert_same(texts, language=language)


@settings(max_examples=4 * EXAMPLES)
@given(st.lists(TEXTS | ANY | MAIL | STOPS | st.text(alphabet="aAbBzZ@[`{1, ", max_size=60), max_size=4))
def test_any_texts(texts: list[str]) -> None:
    assert_same(texts)


def test_every_pair_of_pieces() -> None:
    """Each piece before, after and between letters, and next to each other piece."""
    texts = [f"{first}{second}" for first in PIECES for second in PIECES]
    texts += [f"x{piece}y" for piece in PIECES] + [f"{piece} {piece}.{piece}\n{piece}" for piece in PIECES]
    assert assert_same(texts) > 20_000


def test_every_kind_of_code_point() -> None:
    """Alone, within a word, before a full stop, and after one: the classes and normal forms of this interpreter.

    Of letters without case, of private and of unassigned code points, which are most and alike, every 64th.
    """
    points = [
        point
        for point in range(sys.maxunicode + 1)
        if (kind := unicodedata.category(chr(point))) != "Cs" and (point % 64 == 0 or kind not in {"Lo", "Cn", "Co"})
    ]
    texts = [
        "".join(
            f"{character} a{character}b {character}. B.{character} C" for character in map(chr, points[at : at + 64])
        )
        for at in range(0, len(points), 64)
    ]
    assert assert_same(texts) > 100_000


@settings(max_examples=200)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_slices_and_large_strings(texts: list[str], data: st.DataObject) -> None:
    """A text ends where its slice says, though the bytes of the next one follow."""
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    for kind in (pa.string(), pa.large_string()):
        assert_same(texts[start:stop], pa.array(texts, kind).slice(start, stop - start))


# What the kernels give is compared above.
CHECKED = """
import sys
import pyarrow as pa
from tests.text.test_scanner import PIECES, tokenize_texts
for piece in PIECES:
    tokenize_texts(pa.array([text for other in PIECES for text in (piece + other, other)]), spans=True)
print("every position was inside")
"""


@pytest.mark.nightly
def test_no_position_is_out_of_bounds(tmp_path: Path) -> None:
    """The same kernels with numba's bounds checks, each text at the end of its buffer."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", CHECKED], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "every position was inside", result.stderr


def test_classes_are_those_of_the_expressions() -> None:
    """For every code point there is, those that no Arrow string can hold included."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for bit, pattern in characters.PATTERNS.items():
        expected = np.zeros(len(every), dtype=bool)
        for run in re.finditer(f"(?:{pattern})+", every):
            expected[run.start() : run.end()] = True
        assert np.array_equal((characters.character_classes() & bit) != 0, expected), pattern


def test_what_the_scanner_takes_for_granted() -> None:
    """That no run can give characters back, and that white space ends tokens and sentences: see the module's head."""

    def members(name: str) -> set[str]:
        bit = getattr(characters, name)
        return {chr(point) for point in np.flatnonzero(characters.character_classes() & bit).tolist()}

    letters, spaces = members("LETTER"), members("SPACE")
    assert members("BREAK") < spaces < members("NO_URL") < members("AFTER_URL")
    assert members("ALPHA") | members("DIGIT") < letters
    assert not letters & (members("JOINER") | spaces | set("@#"))
    assert not members("CLOSER") & (spaces | members("STOP"))
    assert not {"@"} & (members("LOCAL") | members("MARK")) and "#" not in members("MARK")
    assert not {"."} & (members("DOMAIN") | members("ALPHA")) and not set(".,:") & members("DIGIT")
    # Words of languages are compared as letters of Latin-1, eight at most, which have one letter in lower case. One
    # letter beyond ASCII has ASCII in lower case: it stays as it is, and so is in no such word.
    for word in {*CUTS, *SHORT}:
        assert word.islower() and word.isalpha() and len(word) <= LONGEST
        assert all(letter < "\xff" and letter != "ß" for letter in word)
    odd = [character for character in map(chr, range(128, sys.maxunicode + 1)) if character.lower().isascii()]
    assert odd == ["\u212a"]


@settings(max_examples=EXAMPLES)
@given(TEXTS | ANY)
def test_the_case_of_ascii_letters_does_not_change_a_normal_form(text: str) -> None:
    """Surfaces have ASCII letters in lower case before normal_form sees them."""
    lowered = re.sub("[A-Z]", lambda letter: letter[0].lower(), text)
    assert normal_form(lowered) == normal_form(text)


@pytest.mark.parametrize("unit", ["a", "a.", "ab-", " ", '."', "_", "1,", "x@", "\n", "e\u0301", "www.", "Dr. ", "! "])
def test_long_runs(unit: str) -> None:
    """Also where there are more tokens than room was made for."""
    assert_same([unit * 10_000, "b", unit * 10_000 + "@x.org"])


def test_no_texts_and_texts_beside_each_other() -> None:
    """The stop before quotes, or the letters before a stop, are not looked for in the text before."""
    for texts in ([], [""], ["", ""], [" \n"], ["a", " ", "b"], ["a.", '") b'], ["D", "r. b"], ["", "J", ". b"]):
        assert_same(texts)
        assert_same(texts, pa.array(texts, pa.large_string()))
    assert tokenize_texts(pa.array(["a.", '" b'])).sentence_sizes.tolist() == [2, 2]
    assert tokenize_texts(pa.array(["D", "r. b"])).sentence_sizes.tolist() == [1, 2, 1]


SECRET = "Zanzibar"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pa.array([SECRET, None, None]), "2 of 3 texts to tokenize are null"),
        (pa.array([1, 2]), "Int64Array of int64"),
        (pa.chunked_array([[SECRET]]), "ChunkedArray of string"),
        (pa.array([SECRET.encode() + b"\xf0\x9f"]).view(pa.string()), "not valid UTF-8"),
        (pa.array([b"\xed\xa0\x80" + SECRET.encode()]).view(pa.string()), "not valid UTF-8"),
        (pa.array([SECRET]), "8 bytes of text to tokenize at once; the limit is 7"),
    ],
)
def test_refused(texts: object, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize, "MAX_BYTES", 7)
    with pytest.raises(RequestError, match=message) as error:
        tokenize_texts(texts)
    assert SECRET not in str(error.value)


def test_the_default_corpus() -> None:
    assert assert_same(articles() + [text for _, text in polarity()]) > 70_000
