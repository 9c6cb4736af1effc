"""The scanner gives what the regular expressions give: the same tokens, sentences, normal forms and spans."""

import gzip
import json
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
from lexveil.text import normal_forms, tokenize
from lexveil.text.kernels import surfaces
from lexveil.text.languages import LANGUAGES
from lexveil.text.languages.base import LONGEST
from lexveil.text.normal_forms import normal_form
from lexveil.text.tokenize import spans_of_texts, tokenize_texts
from tests.text.reference_tokenizer import sentences, token_spans

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data" / "corpus"
# `TOKENIZE_EXAMPLES=20000 pytest tests/text/test_scanner.py` looks longer than every run has to.
EXAMPLES = int(os.environ.get("TOKENIZE_EXAMPLES", "300"))

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


def assert_same(texts: list[str], array: pa.Array | None = None, language: str = "en") -> int:
    """Compare everything with the expressions, and see that no text is lost; return the number of tokens."""
    array = pa.array(texts, pa.string()) if array is None else array
    expected = [sentences(text, language) for text in texts]
    flat = [form for text in expected for sentence in text for form in sentence]
    places = [list(span) for text in texts for sentence in token_spans(text, language) for span in sentence]
    tokens, spans = spans_of_texts(array, language)
    for found in (tokens, tokenize_texts(array, language)):
        words = found.words.to_pylist()
        assert found.words.type == pa.string()
        assert words == list(dict.fromkeys(flat))
        assert [words[at] for at in found.ids.tolist()] == flat
        assert found.sentence_sizes.tolist() == [len(sentence) for text in expected for sentence in text]
        assert found.sentences_per_text.tolist() == [len(text) for text in expected]
        types = {found.ids.dtype, found.sentence_sizes.dtype, found.sentences_per_text.dtype, spans.dtype}
        assert types == {np.dtype(np.int32)}
    assert spans.shape == (len(flat), 2)
    assert spans.tolist() == places
    for text in texts:
        written = [text[start:end] for sentence in token_spans(text, language) for start, end in sentence]
        assert "".join(written) == "".join(text.split())
    return len(flat)


@settings(max_examples=EXAMPLES)
@given(st.lists(TEXTS, max_size=4))
def test_texts_that_hit_every_rule(texts: list[str]) -> None:
    assert_same(texts)


@settings(max_examples=EXAMPLES)
@given(st.lists(ANY, max_size=4))
def test_texts_of_any_characters(texts: list[str]) -> None:
    assert_same(texts)


@settings(max_examples=EXAMPLES)
@given(st.lists(MAIL, max_size=3))
def test_mail_addresses(texts: list[str]) -> None:
    assert_same(texts)


@pytest.mark.parametrize("letter", ["a", "é", "漢", "𝐀"])
def test_the_bound_of_mail_addresses_is_in_characters(letter: str) -> None:
    """64 of them, whether they take one byte each or four."""
    for size in (63, 64, 65, 128, 129):
        assert_same([f"{letter * size}@b.c", f"a {letter * size}@b.c @", f"{letter}.{letter * size}@b.c"])
    tokens = tokenize_texts(pa.array([f"{letter * 64}@b.c", f"{letter * 65}@b.c"]))
    assert tokens.sentence_sizes.tolist() == [1, 4]  # one address; a word, a handle, a full stop and a word


@settings(max_examples=EXAMPLES)
@given(st.lists(STOPS, max_size=4))
def test_sentence_ends(texts: list[str]) -> None:
    assert_same(texts)


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


@given(st.lists(st.text(alphabet="aAbBzZ@[`{1, ", max_size=60), max_size=3))
def test_words_that_need_no_python(texts: list[str]) -> None:
    """Where every normal form is the scanner's own, words that differ in case must be one word already."""
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


def test_classes_are_those_of_the_expressions() -> None:
    """For every code point there is, those that no Arrow string can hold included."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for bit, pattern in tokenize._PATTERNS.items():
        expected = np.zeros(len(every), dtype=bool)
        for run in re.finditer(f"(?:{pattern})+", every):
            expected[run.start() : run.end()] = True
        assert np.array_equal((tokenize._classes() & bit) != 0, expected), pattern


def test_what_the_scanner_takes_for_granted() -> None:
    """That no run can give characters back, and that white space ends tokens and sentences: see the module's head."""
    classes = tokenize._classes()

    def members(bit: int) -> set[str]:
        return {chr(at) for at in np.flatnonzero(classes & bit).tolist()}

    letters, spaces, closers = (
        members(tokenize.LETTER),
        members(tokenize.SPACE),
        members(tokenize.CLOSER),
    )
    assert members(tokenize.BREAK) < spaces < members(tokenize.NO_URL) < members(tokenize.AFTER_URL)
    assert members(tokenize.ALPHA) | members(tokenize.DIGIT) < letters
    assert not members(tokenize.JOINER) & letters
    assert not letters & spaces
    assert not closers & (spaces | members(tokenize.STOP))
    assert not {"@"} & members(tokenize.LOCAL)
    assert not {"."} & (members(tokenize.DOMAIN) | members(tokenize.ALPHA))
    assert not set(".,:") & members(tokenize.DIGIT)
    assert not set("@#") & (letters | members(tokenize.MARK))
    # Words of languages are compared as letters of Latin-1, eight at most, which have one letter in lower case. One
    # letter beyond ASCII has ASCII in lower case: it stays as it is, and so is in no such word.
    for one in LANGUAGES.values():
        for word in one.abbreviations | one.elisions | one.leading | one.trailing:
            assert word.islower() and word.isalpha() and len(word) <= LONGEST
            assert all(letter < "\xff" and letter != "ß" for letter in word)
    odd = [character for character in map(chr, range(128, sys.maxunicode + 1)) if character.lower().isascii()]
    assert odd == ["\u212a"]


@settings(max_examples=EXAMPLES)
@given(TEXTS | ANY)
def test_the_case_of_ascii_letters_does_not_change_a_normal_form(text: str) -> None:
    """Surfaces are numbered with ASCII letters in lower case before normal_form sees them."""
    lowered = re.sub("[A-Z]", lambda letter: letter[0].lower(), text)
    assert normal_forms._normal(lowered) == normal_forms._normal(text)


@pytest.mark.parametrize(
    "unit", ["a", "a.", "ab-", " ", ".", '."', "'", "_", "1.", "1,", "x@", "\n", "e\u0301", "www.", "Dr. "]
)
def test_long_runs(unit: str) -> None:
    assert_same([unit * 20_000, "b", unit * 20_000 + "@x.org"])


def test_arrays_are_enlarged() -> None:
    """More tokens than a fourth of the bytes, more surfaces than the first table holds, and open sentences between."""
    many = " ".join(f"w{number}" for number in range(30_000))
    assert assert_same(["! " * 5_000, "a b " * 30_000, many, many, "! ? " * 9_000]) > 100_000


def test_no_texts_and_empty_texts() -> None:
    for texts in ([], [""], ["", ""], [" \n"], ["", "a", ""], ["a", " ", "b"]):
        assert_same(texts)
        assert_same(texts, pa.array(texts, pa.large_string()))


@settings(max_examples=200)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_slices_and_large_strings(texts: list[str], data: st.DataObject) -> None:
    """A text ends where its slice says, though the bytes of the next one follow."""
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    for kind in (pa.string(), pa.large_string()):
        assert_same(texts[start:stop], pa.array(texts, kind).slice(start, stop - start))


def test_a_token_ends_with_its_text() -> None:
    """Cut anywhere between two characters, the neighbours' bytes change nothing."""
    text = "Dr. u.s. a@b.c https://x.y/z. 3.14 don’t __ é\u0301… #tag I. 漢😀--"
    for cut in range(len(text) + 1):
        for next_cut in range(cut, len(text) + 1):
            assert_same([text[:cut], text[cut:next_cut], text[next_cut:]])


def test_a_sentence_starts_with_its_text() -> None:
    """The stop before quotes, or the letters before a stop, are not looked for in the text before."""
    for texts in (["a.", '") b'], ["a", "”’ b"], ["D", "r. b"], ["ap", "prox. b"], ["", "J", ". b"], ["a!", " ) b"]):
        assert_same(texts)
    assert tokenize_texts(pa.array(["a.", '" b'])).sentence_sizes.tolist() == [2, 2]
    assert tokenize_texts(pa.array(["D", "r. b"])).sentence_sizes.tolist() == [1, 2, 1]


# What the kernels give is compared above.
CHECKED = """
import sys
import pyarrow as pa
from tests.text.test_scanner import PIECES, spans_of_texts
for piece in PIECES:
    spans_of_texts(pa.array([text for other in PIECES for text in (piece + other, other)]))
print("every position was inside")
"""


def test_no_position_is_out_of_bounds(tmp_path: Path) -> None:
    """The same kernels with numba's bounds checks, each text at the end of its buffer."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", CHECKED], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "every position was inside", result.stderr


def test_words_are_compared_and_not_only_their_hashes() -> None:
    """Two surfaces of one hash keep their own numbers."""
    data = np.frombuffer(b"abcdAB", np.uint8)
    slots, hashes = np.full(8, -1, np.int32), np.zeros(4, np.uint64)
    places = np.array([[0, 2], [2, 4], [0, 0], [0, 0]], np.int32)
    slots[5], slots[6] = 0, 1
    hashes[:2] = 5  # as if ab and cd had the same
    find = surfaces.find_slot
    assert find(data, 2, 4, np.uint64(5), slots, hashes, places) == 6
    assert find(data, 0, 2, np.uint64(5), slots, hashes, places) == 5
    assert find(data, 4, 6, np.uint64(5), slots, hashes, places) == 5
    assert find(data, 1, 3, np.uint64(5), slots, hashes, places) == 7
    assert find(data, 0, 1, np.uint64(5), slots, hashes, places) == 7


def test_a_larger_table_keeps_every_surface() -> None:
    """Also those that want the same slot, the first surface among them."""
    slots = np.full(8, -1, np.int32)
    surfaces.refill(slots, np.array([5, 13, 5, 7], np.uint64))
    assert slots.tolist() == [3, -1, -1, -1, -1, 0, 1, 2]


SECRET = "Zanzibar"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pa.array([SECRET, None, None]), "2 of 3 texts to tokenize are null"),
        (pa.array([1, 2]), "Int64Array of int64"),
        (pa.array([SECRET.encode()]), "BinaryArray of binary"),
        (pa.chunked_array([[SECRET]]), "ChunkedArray of string"),
        ([SECRET], "list of objects"),
        (pa.array([SECRET.encode() + b"\xff"]).view(pa.string()), "not valid UTF-8"),
        (pa.array([SECRET.encode() + b"\xf0\x9f"]).view(pa.string()), "not valid UTF-8"),
        (pa.array([b"\xed\xa0\x80" + SECRET.encode()]).view(pa.string()), "not valid UTF-8"),
    ],
)
def test_refused(texts: object, message: str) -> None:
    for function in (tokenize_texts, spans_of_texts):
        with pytest.raises(RequestError, match=message) as error:
            function(texts)
        assert SECRET not in str(error.value)


def test_too_much_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize, "MAX_BYTES", 3)
    assert tokenize_texts(pa.array(["abc"])).words.to_pylist() == ["abc"]
    with pytest.raises(RequestError, match="4 bytes of text to tokenize at once; the limit is 3"):
        tokenize_texts(pa.array(["ab", "cd"]))


def test_nothing_is_kept_between_batches() -> None:
    """The same batch gives the same arrays, whatever came before."""
    first = tokenize_texts(pa.array(["A b’c ...", "b'c"]))
    tokenize_texts(pa.array(["zzz y . .. …", "b'c a"]))
    again = tokenize_texts(pa.array(["A b’c ...", "b'c"]))
    assert first.words.equals(again.words)
    assert first.ids.tolist() == again.ids.tolist() == [0, 1, 2, 1]
    assert again.words.to_pylist() == ["a", "b'c", "..."]


def test_the_default_corpus() -> None:
    texts = articles() + [text for _, text in polarity()]
    assert assert_same(texts) > 70_000


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")
@pytest.mark.nightly
def test_real_texts() -> None:
    """Posts, blogs, articles and reviews as people wrote them; tokens enough to have met what is rare."""
    with gzip.open(SHARED / "corpus-validation.00000-of-00001.json.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert any(not text.isascii() for text in texts)
    assert all(unicodedata.is_normalized("NFC", text) for text in texts[:100])
    assert assert_same(texts) > 500_000
    decomposed = [unicodedata.normalize("NFD", text) for text in texts if not text.isascii()]
    assert assert_same(decomposed[:500]) > 10_000
    assert normal_form("e\u0301") == "é"
