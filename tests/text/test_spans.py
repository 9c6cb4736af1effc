"""Assignment of words to spans, by an example worked by hand and against the rule written out word
by word.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon, TokenClass, encode
from lexveil.core.text.normal_forms import normal_form
from lexveil.core.text.spans import NOBODY, Span, Spans, Words, claims_of, owners
from tests.text.reference_tokenizer import token_spans

TEXT = "Call Ann Lee-Roy of New York, now."
#       0    5   9       17 20  24  28 30
COLLOCATIONS = Collocations.build(
    [["new", "of"], ["york", "new"]], np.array([5.0, 9.0]), [["a"], ["b"], ["c"]], np.array([1.0])
)
TOKENS = ["call", "ann", "of", "new_york", "of_new", "new", "york", ",", "now", "."]


def words_of(*texts):
    found = [
        (number, span)
        for number, text in enumerate(texts)
        for part in token_spans(text)
        for span in part
    ]
    forms = [normal_form(texts[number][start:end]) for number, (start, end) in found]
    distinct = list(dict.fromkeys(forms))
    return Words(
        distinct,
        np.array([distinct.index(form) for form in forms], dtype=np.int32),
        np.array([span for _, span in found], dtype=np.int32).reshape(-1, 2),
        np.array([number for number, _ in found], dtype=np.int32),
    )


def test_what_is_allowed_nobody_has_and_it_divides_a_span():
    """The text is "call ann lee-roy of new york , now .". The span begins within a word, and covers
    all of that word.
    """
    words = words_of(TEXT)
    spans = Spans.of([(0, Span(6, 28, "A"))])
    claims = claims_of(spans, words, np.array([True]), np.arange(9) == 3)
    assert claims.type.tolist() == [-1, 0, 0, -1, 0, 0, -1, -1, -1]
    assert claims.begins.tolist() == [True, True, False, True, True, False, True, False, False]
    assert claims.joined(np.ones(9, dtype=np.int8)).tolist() == [1, 2, 0, 1, 2, 0, 1, 1, 1]


def encoded(text, *spans, whole):
    lexicon = Lexicon.build("gst", TOKENS, COLLOCATIONS)
    several = Spans.of((0, span) for span in spans)
    done = encode(
        [text], lexicon, lambda words: claims_of(several, words, np.full(len(several.types), whole))
    )
    assert done.found is not None
    firsts = done.first_word.tolist()
    sizes = done.n_words.tolist()
    return [
        ("_".join(done.words[first : first + size]), TokenClass(kind).label, name)
        for first, size, kind, name in zip(
            firsts, sizes, done.kind.tolist(), done.found.names(), strict=True
        )
    ]


def test_a_collocation_without_a_vector_is_no_token():
    assert encoded("a b c", whole=True) == [
        ("a", "stopword", None),
        ("b", "oov", None),
        ("c", "oov", None),
    ]


def test_a_piece_is_one_token_or_ordinary_ones_and_no_collocation_crosses_its_border():
    plain = encoded(TEXT, whole=True)
    assert ("of_new", "word", None) in plain
    one = encoded(TEXT, Span(20, 28, "PLACE"), whole=True)
    assert one[3:6] == [
        ("of", "stopword", None),
        ("new_york", "found", "PLACE"),
        (",", "punctuation", None),
    ]
    several = encoded(TEXT, Span(20, 28, "PLACE"), whole=False)
    assert several[3:5] == [("of", "stopword", None), ("new_york", "word", "PLACE")]
    cut = encoded(TEXT, Span(24, 28, "PLACE"), whole=False)
    assert cut[3:5] == [("of_new", "word", None), ("york", "word", "PLACE")]


LETTERS = st.text(st.sampled_from("ab .,-"), max_size=25)


@given(
    st.lists(LETTERS, min_size=1, max_size=3),
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 24), st.integers(1, 10), st.sampled_from("ABC")
        ),
        max_size=8,
    ),
    st.sets(st.integers(0, 40)),
)
def test_the_rule_written_out(texts, drawn, allowed):
    several = [
        (text % len(texts), Span(start, start + size, kind)) for text, start, size, kind in drawn
    ]
    words = words_of(*texts)
    n = len(words.word)
    places = [(int(words.text_of[i]), *map(int, words.spans[i])) for i in range(n)]

    def touched(text, span):
        return [
            i
            for i, (of, start, end) in enumerate(places)
            if of == text and start < span.end and end > span.start
        ]

    best = []
    for i in range(n):
        ranked = []
        for number, (text, span) in enumerate(several):
            has = touched(text, span)
            if i in has:
                start = places[has[0]][1]
                end = places[has[-1]][2]
                ranked.append((start - end, start, span.type, number))
        best.append(NOBODY if not ranked or i in allowed else min(ranked)[3])
    spans = Spans.of(several)
    flags = np.isin(np.arange(n), list(allowed))
    found = owners(spans, words, flags).tolist()

    def key(number):  # equal spans are one
        return (
            NOBODY
            if number == NOBODY
            else (several[number][0], touched(*several[number]), several[number][1].type)
        )

    assert list(map(key, found)) == list(map(key, best))
    claims = claims_of(spans, words, np.ones(len(spans.types), dtype=bool), flags)
    lengths = claims.joined(np.ones(n, dtype=np.int8))
    assert lengths.sum() == n  # every word is in one token, and
    starts = np.flatnonzero(lengths)
    for first, size in zip(starts.tolist(), lengths[starts].tolist(), strict=True):
        piece = slice(first, first + size)
        # of one span and text
        assert len(set(found[piece])) == 1 and len(set(words.text_of[piece].tolist())) == 1
        assert size == 1 or found[first] != NOBODY
