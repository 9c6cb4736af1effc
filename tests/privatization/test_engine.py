"""A batch of texts: its keys, every policy on a toy vocabulary, every token accounted for, and sums
over batches."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.accounting.subject_keys import text_keys
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon, encode
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.counts import ExactSum, Tally
from lexveil.release.engine.plan import plan_tokens
from lexveil.release.engine.worker import Components, rewrite

PERTURBED, KEPT, DROPPED, SAMPLED, *_ = Action

TOKENS = ["the", ",", "new_york", "cat", "dog", "is", ".", "ran_away_again"]
VECTORS = np.random.default_rng(2).standard_normal((len(TOKENS), 3)).astype(np.float32)
COLLOCATIONS = Collocations.build(
    [["new"], ["york"]], np.array([5.0]), [["ran"], ["away"], ["again"]], np.array([9.0])
)
LEXICON = Lexicon.build("gst", TOKENS, COLLOCATIONS)
TEXTS = ["The cat is, Zorblax.", "", "dog ran away again", "New York!"]


def done(policy, epsilon=5.0, texts=TEXTS):
    vocabulary = Vocabulary.of(TOKENS, VECTORS, policy)
    budgets = np.full(len(texts), epsilon)
    components = Components(LEXICON, vocabulary, Madlib(vocabulary.vectors))
    encoded = encode(texts, LEXICON)
    planned = encoded, plan_tokens(encoded, vocabulary.number, policy)
    return rewrite(texts, planned, budgets, components, lambda i: stream(1, str(i)))


def test_huge_epsilon_gives_the_text_back():
    out = done(Policy("perturb", "perturb", "keep"), epsilon=1e9)
    assert out.texts == ["the cat is, zorblax.", "", "dog ran away again", "new york!"]
    # "!" has no vector
    assert out.action.tolist() == [PERTURBED] * 4 + [KEPT] + [PERTURBED] * 4 + [KEPT]
    assert out.out_words.tolist() == [1, 1, 1, 1, 1, 1, 1, 3, 2, 1]


@pytest.mark.parametrize(
    ("policy", "first", "actions"),
    [
        (
            Policy("keep", "keep", "keep"),
            "the cat is, zorblax.",
            [KEPT, PERTURBED, KEPT, KEPT, KEPT, KEPT],
        ),
        (
            Policy("drop", "drop", "drop"),
            "cat",
            [DROPPED, PERTURBED, DROPPED, DROPPED, DROPPED, DROPPED],
        ),
        (
            Policy("perturb", "drop", "drop"),
            "the cat is",
            [PERTURBED, PERTURBED, PERTURBED, DROPPED, DROPPED, DROPPED],
        ),
    ],
)
def test_policies(policy, first, actions):
    out = done(policy, epsilon=1e9)
    assert out.texts[0] == first
    assert out.action[:6].tolist() == actions
    assert ((out.token_epsilon > 0) == (out.action == PERTURBED)).all()
    assert ((out.rows >= 0) == np.isin(out.action, [PERTURBED, SAMPLED])).all()
    assert ((out.out_words == 0) == (out.action == DROPPED)).all()


def test_sampled_tokens_are_uniform_and_know_nothing():
    """20,000 unknown words: each of the 6 words of W within 6 standard errors of 1/6, whatever the
    unknown word."""
    for unknown in ("zorblax", "quux"):
        out = done(Policy("perturb", "keep", "sample"), texts=[" ".join([unknown] * 20_000)])
        assert (out.action == SAMPLED).all() and (out.token_epsilon == 0).all()
        share = np.bincount(out.rows, minlength=len(TOKENS)) / 20_000
        assert share[[1, 6]].tolist() == [0.0, 0.0]  # punctuation is not in W
        words = [0, 2, 3, 4, 5, 7]
        assert np.abs(share[words] - 1 / 6).max() < 6 * np.sqrt(1 / 6 * 5 / 6 / 20_000)


def test_words_never_turn_into_kept_punctuation():
    out = done(Policy("perturb", "keep", "sample"), epsilon=0.01, texts=["the cat is dog"] * 200)
    assert not {",", "."} & {TOKENS[row] for row in out.rows}
    free = done(
        Policy("perturb", "perturb", "sample"), epsilon=0.01, texts=["the cat is dog"] * 200
    )
    assert {",", "."} & {TOKENS[row] for row in free.rows}


PIECES = [
    "The",
    "http://a.B/c",
    "hTtps://x.y",
    "don’t",
    "CAFÉ",
    "cafe\u0301",
    "…",
    "U.S.",
    "ﬁ",
    "\u200b",
    "l'Été",
    "ſ",
    "İ",
    "—",
    "😀",
    "\x85",
    "\u2065",
    "\ufff5",
    None,
    "",
]


def arrow(rows):
    return ArrowRows([pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)])


def batch_of_rows(rows):
    return Batch(rows, [()] * len(rows))


@pytest.mark.parametrize("width", [1, 3])
def test_a_text_has_one_key_in_whatever_form_it_comes(width):
    """A text has the same key in lists and in Arrow, in any part of an array, and in any of its
    columns.
    """
    glued = [
        None if first is None else first + (last or "")
        for first, last in itertools.product(PIECES, repeat=2)
    ]
    rows = [[text, *[None, ""][: width - 1]] for text in glued]
    keys = text_keys([[text] for text in glued])
    assert keys == text_keys(rows) == text_keys([row[::-1] for row in rows])
    assert keys == batch_of_rows(rows).text_keys == batch_of_rows(arrow(rows)).text_keys
    assert keys[3:] == batch_of_rows(arrow(rows)[3:]).text_keys


@pytest.mark.parametrize("as_arrow", [True, False])
def test_parts_of_a_batch_are_the_batch(as_arrow):
    rows = [["x" * size] for size in (5, 0, 9, 30, 1, 1, 8)]
    keys = [(str(number),) for number in range(7)]
    batch = Batch(arrow(rows) if as_arrow else rows, keys, first_row=3)
    parts = batch.parts(10)
    assert len(parts) > 3 and batch.parts(1000) == [batch]
    assert [row for part in parts for row in part.rows] == rows
    assert [key for part in parts for key in part.keys] == keys
    assert [part.first_row for part in parts] == [3 + int(part.keys[0][0]) for part in parts]


NUMBERS = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300), max_size=40
)


@given(NUMBERS, st.integers(1, 5))
def test_a_sum_is_exact_in_whatever_parts_it_comes(numbers, n_parts):
    """The sum equals that of math.fsum, which rounds once, even with subnormal numbers and
    cancellation.
    """
    whole = ExactSum()
    parts = ExactSum()
    whole.add(np.array(numbers, dtype=np.float64))
    for part in np.array_split(np.array(numbers, dtype=np.float64)[::-1], n_parts):
        of_part = ExactSum()
        of_part.add(part)
        parts += of_part
    assert float(whole) == float(parts) == math.fsum(numbers)


def test_many_equal_numbers_do_not_overflow():
    total = ExactSum()
    total.add(np.full(100_000, 1 - 2.0**-53))
    assert float(total) == 100_000 * (1 - 2.0**-53)


def test_shares_of_documents():
    """There are 20 documents: 17 keep nothing, one a third, one nearly all, and one all."""
    tally = Tally()
    assert tally.document_shares() is None
    for percent, n in ((0, 17), (34, 1), (95, 1), (100, 1)):
        tally.by_percent[percent] += n
    shares = tally.document_shares()
    assert (shares.documents, shares.median_unchanged, shares.worst_tenth_unchanged) == (
        20,
        0.0,
        0.34,
    )
    assert shares.nearly_verbatim == 2 and shares.caution() is None
