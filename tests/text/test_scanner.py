"""The scanner gives what the regular expressions give: the same tokens, sentences, normal forms and
spans."""

import os
import subprocess
import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.base.errors import RequestError
from lexveil.core.text import tokenize
from lexveil.core.text.languages import LANGUAGES
from lexveil.core.text.languages.base import LONGEST_ABBREVIATION
from lexveil.core.text.tokenize import tokenize_texts
from lexveil.lab.data.default import articles, polarity
from tests.text.reference_tokenizer import assert_same

pytestmark = pytest.mark.slow


PIECES = (
    # the beginnings and parts of every alternative of the token expression
    "http://",
    "https://",
    "HTTP://",
    "http:/",
    "htt",
    "ww",
    "www.",
    "www",
    "@",
    "#",
    "_",
    "__",
    "a_b",
    "x@y.z",
    "+",
    "-",
    "--",
    ".",
    "..",
    "...",
    "!",
    "!!",
    "?",
    "?!",
    "*",
    "**",
    "=",
    "==",
    "~",
    "~~",
    ",",
    ":",
    ";",
    "<",
    ">",
    '"',
    "'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "/",
    "&",
    "$",
    "0",
    "1",
    "12",
    "3.14",
    "10,000",
    "12:30",
    "1.",
    "u.s.",
    "U.S",
    "e.g.",
    "a.b",
    "I.",
    "I",
    "J",
    "i",
    "Dr",
    "dr",
    "mr.",
    "Approx.",
    "APPROX",
    "etc",
    "Inc",
    "sept",
    "no",
    "don't",
    "well-known",
    "Hello",
    "ab",
    "Z",
    # white space and line breaks of every kind, and control characters that are neither
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x1f",
    "\x85",
    "\xa0",
    "\u2003",
    "\u2028",
    "\u2029",
    "\u3000",
    "\0",
    "\x01",
    "\x7f",
    "\x84",
    "\u200b",
    "\ufeff",
    # beyond ASCII: marks, joiners, letters of every width in bytes, of both cases, composed and
    # not, and digits
    "’",
    "‘",
    "“",
    "”",
    "„",
    "ʼ",
    "–",
    "—",
    "‐",
    "‑",
    "…",
    "……",
    "é",
    "É",
    "e\u0301",
    "\u0301",
    "\u200d",
    "\ufe0f",
    "ß",
    "ẞ",
    "İ",
    "ı",
    "ſ",
    "\u212a",
    "\u212b",
    "Σ",
    "ΑΣ",
    "AΣ",
    "σ",
    "ς",
    "ǅ",
    "Ж",
    "я",
    "ש",
    "ا",
    "ก",
    "あ",
    "漢",
    "𝐀",
    "𐐀",
    "😀",
    "👩\u200d👧",
    "٣",
    "۴",
    "²",
    "½",
    "Ⅷ",
    "＿",
    "‿",
    "\ufffd",
    "\U0010ffff",
    "\u0378",
    "\u037e",
    "\u1fef",
    # the bound of an e-mail address's first part, in characters and in bytes
    "a" * 63,
    "a." * 32,
    "é" * 64,
    "-" * 65,
    "漢" * 63,
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
ANY = st.text(max_size=120) | st.text(alphabet="aB1 .,!?'’\"-_@#/:\n\t…é\u0301😀", max_size=120)
BEFORE = st.sampled_from(["", " ", "a@", "#", "é.", "www."])
MAIL = st.text(alphabet="aé1._+-@ ", max_size=150) | st.builds(
    "{}{}@{}".format, BEFORE, st.text("a漢.", min_size=60, max_size=70), TEXTS
)
STOPS = st.lists(
    st.sampled_from([*"Dr I J É ab 5 ǅ . . ! … ' ” )".split(), " ", " ", "\n", "\u2028"]),
    max_size=40,
).map("".join)


# What languages cut at: every word before and after an apostrophe, abbreviations, ordinals, and
# what is nearly one.
CUTS = sorted(
    {word for one in LANGUAGES.values() for word in (*one.elisions, *one.leading, *one.trailing)}
)
SHORT = sorted({word for one in LANGUAGES.values() for word in one.abbreviations})
NEARLY = (
    "'",
    "'",
    "’",
    "‘",
    "-",
    ".",
    ".",
    ". ",
    " ",
    "\n",
    "3",
    "31",
    "310",
    "٣",
    "h",
    "homme",
    "é",
    "É",
    "\u0301",
    "\u212a",
    "ſ",
    "İ",
    "ß",
    "ÿ",
    "Ÿ",
    "œ",
    "漢",
    '"',
    "«",
    "»",
    "¿",
    "¡",
    "a@b.c",
    "_",
    "I",
)
AROUND = st.lists(
    st.sampled_from(CUTS + [word.upper() for word in CUTS])
    | st.sampled_from(SHORT + [word.title() for word in SHORT])
    | st.sampled_from(NEARLY),
    max_size=25,
).map("".join)


@pytest.mark.parametrize("language", [*LANGUAGES, "sv"])
@given(texts=st.lists(AROUND | TEXTS | ANY | MAIL | STOPS, max_size=4))
def test_any_texts(language, texts):
    assert_same(texts, language=language)


def test_every_pair_of_pieces():
    """Each piece before, after and between letters, next to each other piece, and at the end of a
    buffer."""
    for piece in PIECES:
        assert_same(
            [
                f"x{piece}y",
                f"{piece} {piece}.{piece}\n{piece}",
                *(other + piece for other in PIECES),
            ]
        )


@pytest.mark.nightly
def test_no_position_is_out_of_bounds(tmp_path):
    """The test uses numba's bounds checks, in kernels that are compiled anew."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-n", "0", f"{__file__}::test_every_pair_of_pieces"]
    subprocess.run(command, env=environment, check=True)


def test_every_kind_of_code_point():
    """Alone, within a word, before a full stop, and after one: the classes and normal forms of this
    interpreter.

    Of letters without case, of private and of unassigned code points, which are most and alike,
    every 64th.
    """
    points = [
        point
        for point in range(sys.maxunicode + 1)
        if (kind := unicodedata.category(chr(point))) != "Cs"
        and (point % 64 == 0 or kind not in {"Lo", "Cn", "Co"})
    ]
    text = "{0} a{0}b {0}. B.{0} C".format
    texts = [
        "".join(text(chr(point)) for point in points[at : at + 64])
        for at in range(0, len(points), 64)
    ]
    assert assert_same(texts) > 100_000


@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_slices_and_large_strings(texts, data):
    """A text ends where its slice says, though the bytes of the next one follow."""
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    for kind in (pa.string(), pa.large_string()):
        assert_same(texts[start:stop], pa.array(texts, kind).slice(start, stop - start))


def test_words_of_languages_can_be_compared_as_bytes():
    """The words have a few Latin-1 letters at most. Only one other letter has an ASCII lower case,
    and it stays unchanged.
    """
    for word in {*CUTS, *SHORT}:
        assert word.islower() and word.isalpha() and len(word) <= LONGEST_ABBREVIATION
        assert all(letter < "\xff" and letter != "ß" for letter in word)
    odd = [
        character
        for character in map(chr, range(128, sys.maxunicode + 1))
        if character.lower().isascii()
    ]
    assert odd == ["\u212a"]


LONG = ["a", "a.", "ab-", " ", '."', "_", "1,", "x@", "\n", "e\u0301", "www.", "Dr. ", "! "]


@pytest.mark.parametrize(
    "texts",
    [
        # more tokens than room was made for
        *([unit * 10_000, "b", unit * 10_000 + "@x.org"] for unit in LONG),
        # The bound of an address, in letters of one byte to four.
        *(
            [f"{letter * n}@b.c a @ é.{letter * n}@b.c" for n in (63, 64, 65, 128, 129)]
            for letter in "aé漢𝐀"
        ),
        # The stop before quotes, or the letters before a stop, are not looked for in the text
        # before.
        *(
            [],
            [""],
            ["", ""],
            [" \n"],
            ["a", " ", "b"],
            ["a.", '") b'],
            ["D", "r. b"],
            ["", "J", ". b"],
        ),
    ],
    ids=lambda texts: repr(texts)[:20],
)
def test_texts_at_an_edge(texts):
    assert_same(texts)
    assert_same(texts, pa.array(texts, pa.large_string()))


SECRET = "Zanzibar"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pa.array([SECRET, None, None]), "2 of 3 texts to tokenize are null"),
        (pa.chunked_array([[SECRET]]), "ChunkedArray of string"),
        (pa.array([SECRET.encode() + b"\xf0\x9f"]).view(pa.string()), "not valid UTF-8"),
        (pa.array([b"\xed\xa0\x80" + SECRET.encode()]).view(pa.string()), "not valid UTF-8"),
        (pa.array([SECRET]), "8 bytes of text to tokenize at once; the limit is 7"),
    ],
)
def test_refused(texts, message, monkeypatch):
    monkeypatch.setattr(tokenize, "MAX_BYTES", 7)
    with pytest.raises(RequestError, match=message) as error:
        tokenize_texts(texts)
    assert SECRET not in str(error.value)


def test_the_default_corpus():
    assert assert_same(articles() + [text for _, text in polarity()]) > 70_000
