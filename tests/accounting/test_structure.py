"""Sensitivity of the disclosed structure, against a comparison of each text with its copy, one by
one.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.structure import Replacements, StructureChange, _share, measure
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon, TokenClass, encode
from lexveil.core.text.tokenize import sentences

TOKENS = [
    "the",
    "new_york",
    "is",
    "big",
    ",",
    "york",
    "new",
    "new_york_city",
    "city",
    "rain",
    "is_rain",
]
COLLOCATIONS = Collocations.build(
    [["new", "york"], ["york", "is"]],
    np.array([5.0, 2.0]),
    [["new"], ["york"], ["city"]],
    np.array([4.0]),
)
LEXICONS = {
    "S1": Lexicon.build("word", TOKENS, None),
    "S2": Lexicon.build("gst", TOKENS, COLLOCATIONS),
    "S3": Lexicon.build("gst", TOKENS, COLLOCATIONS),
    "S4": Lexicon.build("mst", TOKENS, COLLOCATIONS),
}
WORDS = ["new", "york", ",", "city", "the", "is", "unknown", "rain", "."]
COUNTS = np.array([9, 9, 50, 4, 5, 5, 2, 1, 30])
TEXTS = [
    "New York is big, the rain. New York City",
    "",
    "the new york city rain",
    "...",
    "rain",
    "Rain is new york",
]
POLICIES = [
    Policy("perturb", "keep", "sample"),
    Policy("keep", "keep", "keep"),
    Policy("perturb", "drop", "drop"),
]


@pytest.fixture(scope="module")
def replacements():
    return Replacements(TEXTS, WORDS, COUNTS, np.random.default_rng(5))


def words(text):
    return list(itertools.chain(*sentences(text)))


def test_a_copy_has_one_other_word(replacements):
    assert replacements.texts == [TEXTS[0], *TEXTS[2:3], *TEXTS[4:]]
    assert np.bincount(replacements.text_of).tolist() == [10] * 4
    for copy, source in zip(replacements.copies, replacements.text_of.tolist(), strict=True):
        old = words(replacements.texts[source])
        new = words(copy)
        changed = [(then, now) for then, now in zip(old, new, strict=True) if then != now]
        assert len(changed) == 1 and changed[0][0].isalnum() and changed[0][1].isalnum()
        assert copy[0].isupper() == replacements.texts[source][0].isupper()


def test_the_other_word_is_drawn_by_its_frequency():
    drawn = Replacements(["the"] * 400, WORDS, COUNTS, np.random.default_rng(1)).copies
    share = {word: drawn.count(word) / len(drawn) for word in set(drawn)}
    assert set(share) == {"new", "york", "city", "is", "unknown", "rain"}
    # 4 standard deviations
    assert all(abs(share[word] - COUNTS[WORDS.index(word)] / 30) < 0.035 for word in share)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strategy", LEXICONS)
def test_shares_are_those_of_one_comparison_after_another(
    strategy, policy, replacements, monkeypatch
):
    monkeypatch.setattr("lexveil.core.accounting.structure.TEXTS_AT_A_TIME", 7)
    lexicon = LEXICONS[strategy]

    def described(text):
        encoded = encode([text], lexicon)
        fate = policy.actions(encoded.kind, encoded.rows >= 0).tolist()
        lengths = encoded.n_words.tolist()
        pays = fate.count(0)
        if pays and strategy in ("S1", "S2"):  # all words, and marks that are perturbed
            pays = sum(
                size
                for size, one, kind in zip(lengths, fate, encoded.kind.tolist(), strict=True)
                if one == 0 or kind != TokenClass.PUNCTUATION
            )
        kind = encoded.kind.tolist()
        forms = [encoded.words[first] for first in encoded.first_word.tolist()]
        kept = [form for form, one in zip(forms, fate, strict=True) if one == 1]
        classes = [
            one + 4 * (row < 0) for one, row in zip(kind, encoded.rows.tolist(), strict=True)
        ]
        return (
            lengths,
            fate,
            pays,
            classes,
            kept,
            [form for form, one in zip(forms, kind, strict=True) if one != 0],
        )

    sums = np.zeros(5)
    bounds = np.zeros(5)
    for copy, source in zip(replacements.copies, replacements.text_of.tolist(), strict=True):
        old = described(replacements.texts[source])
        new = described(copy)
        number, cuts, fates, epsilon, classes, kept, keepable = (
            len(old[0]) != len(new[0]),
            *(a != b for a, b in zip(old, new, strict=True)),
        )
        sums += [number, cuts, fates, epsilon, fates or epsilon or kept]
        every = classes or (cuts and strategy == "S2")
        bounds += [number, cuts, classes, every, every or keepable]
    for expected, given in ((sums, policy), (bounds, None)):
        found = measure(replacements, lexicon, given, strategy)
        shares = [getattr(found, name).share for name in StructureChange.model_fields]
        assert shares == pytest.approx(expected / len(replacements.copies), abs=1e-6)
    assert (bounds >= sums).all() and (sums[0] > 0) == (strategy != "S1")


def test_the_interval_is_wilsons_and_wider_where_texts_differ():
    single = np.arange(200)
    changed = single % 5 == 0
    exact = binomtest(40, 200).proportion_ci(method="wilson")
    found = _share(changed, single)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-3)
    clustered = _share(np.repeat(changed, 10), np.repeat(single, 10))
    assert (clustered.low, clustered.high) == pytest.approx((exact.low, exact.high), abs=1e-3)
    none = _share(np.zeros(200, dtype=bool), single)
    assert (none.share, none.low) == (0, 0) and none.high == pytest.approx(
        1 - 0.025 ** (1 / 200), abs=2e-3
    )
