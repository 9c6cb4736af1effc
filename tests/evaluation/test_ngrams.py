"""Counts that are made once give the features that scikit-learn makes for each part anew."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.ngrams import CountedTexts, Ngrams, Tfidf, take

TEXTS = ["A b, a b.", "a B a", "c!", "", "b a\n\nb", "c d", "d c Ünd ünd", "ünd 3.14 ␞ e", "␞ e; x_y x_y"]


def texts(seed: int, n: int = 60) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{rng.geometric(0.1)}" for _ in range(rng.integers(0, 30))) for _ in range(n)]


def library(learnt: list[str], asked: list[str]) -> np.ndarray:
    """The same features, columns in the order of the sum over both; they have other orders of columns."""
    vectorizer = TfidfVectorizer(
        lowercase=True, token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), min_df=2, sublinear_tf=True
    ).fit(learnt)
    return np.vstack([vectorizer.transform(one).toarray() for one in (learnt, asked)])


def own(learnt: csr_array, asked: csr_array) -> np.ndarray:
    weights = Tfidf.fit(learnt)
    return np.vstack([weights.transform(one).toarray() for one in (learnt, asked)])


def in_order(features: np.ndarray) -> np.ndarray:
    return features[:, np.lexsort(features.round(9))]


@pytest.mark.parametrize("made", [TEXTS * 2, texts(1), texts(2)])
def test_features_of_a_part_are_those_of_the_library_for_that_part(made: list[str]) -> None:
    half = len(made) // 2
    (counted,) = CountedTexts.each(made)
    features = own(counted.take(np.arange(half)).counts, counted.take(np.arange(half, len(made))).counts)
    assert np.allclose(in_order(features), in_order(library(made[:half], made[half:])), atol=1e-12)


def test_texts_of_the_other_collection_make_no_feature_and_no_weight() -> None:
    one, other = texts(1), texts(2)
    alone, beside = CountedTexts.each(one)[0], CountedTexts.each(one, other)[0]
    features = [in_order(own(made.counts, made.counts)) for made in (alone, beside)]
    assert beside.counts.shape[1] > alone.counts.shape[1]
    assert features[0].shape == features[1].shape and np.allclose(*features, atol=1e-12)


def test_texts_that_were_not_counted_are_counted_by_the_same_ngrams() -> None:
    ngrams, counts = Ngrams.counted(TEXTS)
    assert (ngrams.count(TEXTS) != counts).nnz == 0
    assert ngrams.count(["zebra a zebra", "", "a b zebra", "zebra"]).sum(axis=1).tolist() == [1, 0, 3, 0]


def test_counts_by_hand() -> None:
    """In two texts: x, y, and x y. Only in one: z, y x and y z."""
    counts = Ngrams.counted(["x y x", "X Y z"])[1].toarray()
    assert sorted(counts.T.tolist()) == [[1, 1], [1, 1], [2, 1]]


def test_a_collection_given_twice_is_counted_once() -> None:
    one, same = CountedTexts.each(TEXTS, TEXTS)
    assert one is same and list(one) == TEXTS and one.counts.shape[0] == len(TEXTS)
    one, other = CountedTexts.each(TEXTS, [text.upper() for text in TEXTS])
    assert one is not other and (one.counts != other.counts).nnz == 0


def test_a_part_keeps_its_counts_and_order() -> None:
    rows = np.array([4, 0, 4])
    counted = CountedTexts.each(TEXTS)[0]
    part = take(counted, rows)
    assert isinstance(part, CountedTexts) and list(part) == take(TEXTS, rows) == [TEXTS[4], TEXTS[0], TEXTS[4]]
    assert (part.counts != counted.counts[rows]).nnz == 0


@pytest.mark.parametrize("made", [[], [""] * 3, ["a", "b"]])
def test_texts_without_a_shared_ngram(made: list[str]) -> None:
    ngrams, counts = Ngrams.counted(made)
    assert counts.shape == (len(made), 0) and ngrams.count(["a b", ""]).shape == (2, 0)
    assert Tfidf.fit(counts).transform(counts).shape == (len(made), 0)


def test_the_classifier_learns_the_same_from_counted_texts() -> None:
    one, other = texts(3, 200), texts(4, 200)
    classes = ["long" if len(text.split()) > 14 else "short" for text in one]
    learnt, asked = CountedTexts.each(one, other)
    plain = Linear(0).fit(one, classes).predict(other)
    assert len(set(plain)) == 2
    assert Linear(0).fit(learnt, classes).predict(asked) == plain
    assert Linear(0).fit(learnt, classes).predict(other) == plain
    assert Linear(0).fit(one, classes).predict(asked) == plain
