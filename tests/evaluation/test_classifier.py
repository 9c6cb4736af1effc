"""The classifiers: what they learn, that nothing else decides, and what they do when there is
nothing to learn."""

import stat
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from lexveil.base.errors import RequestError
from lexveil.core.language_models.base import joined
from lexveil.lab.evaluation.classifier import Linear, TfidfLogistic
from lexveil.lab.evaluation.fasttext import FastText
from lexveil.lab.evaluation.ngrams import CountedTexts
from lexveil.lab.evaluation.registry import CLASSIFIERS

GOOD = [f"a lovely film number {i} , really" for i in range(8)]
BAD = [f"a dreadful film number {i} , really" for i in range(8)]
TEXTS = GOOD + BAD
CLASSES = ["good"] * 8 + ["bad"] * 8


@pytest.mark.parametrize("name", ["linear", "fasttext"])
def test_learns_the_word_that_decides_and_no_class_that_nothing_decides(name):
    """Crossed classes have half of the good texts and half of the bad ones each."""
    model, crossed = (
        CLASSIFIERS[name].make(0).fit(TEXTS, classes) for classes in (CLASSES, ["x", "y"] * 8)
    )
    assert model.name == name
    assert model.predict(["Lovely!", "so dreadful"]) == ["good", "bad"]
    assert crossed.predict(["lovely"]) == crossed.predict(["dreadful"])


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("linear", "what . then", "what ! then"),
        ("linear", "word a word", "word b word"),
        ("linear", "not bad good", "bad not good"),
        ("fasttext", "not bad good", "bad not good"),
        ("linear", *joined(["left", "right"], ["right", "left"])),
    ],
)
def test_sees_punctuation_single_letters_order_and_where_a_pair_is_joined(name, one, other):
    model = CLASSIFIERS[name].make(0).fit([one] * 40 + [other] * 40, ["one"] * 40 + ["other"] * 40)
    assert model.predict([one, other]) == ["one", "other"]


def test_texts_that_share_no_feature_give_the_most_frequent_class():
    model = Linear(0).fit(["", "...", "a b", "c d e", "f"], ["x", "y", "y", "x", "y"])
    assert model.predict(["a b", "f", ""]) == ["y"] * 3


@pytest.mark.parametrize("name", ["linear", "fasttext"])
def test_learning_again_gives_the_same(name):
    texts = [" ".join(f"w{(7 * i + j * j) % 90}" for j in range(30)) for i in range(60)]
    classes = [str(i % 3) for i in range(60)]
    first, second = (
        CLASSIFIERS[name].make(3).fit(texts[:40], classes[:40]).predict(texts[40:])
        for _ in range(2)
    )
    assert first == second and len(set(first)) == 3


def test_fasttext_takes_no_class_from_a_text_and_any_class_name():
    """Marks of classes in texts, as the library writes them by default and as we do; names that it
    could not hold."""
    names = ["a class\nof two lines", "#=0"]
    texts = ["lovely __label__0 #=0 #=1 </s>\n #=1"] * 20 + [
        "dreadful __label__1 #=1 #=0\n\n#=0 \0"
    ] * 20
    model = FastText(0).fit(texts, [names[0]] * 20 + [names[1]] * 20)
    assert model.predict(["lovely", "dreadful\n__label__0", texts[0], texts[-1]]) == [
        *names,
        *names,
    ]
    assert len(model.predict(["", "\n", "unseen"])) == 3 and model.predict([]) == []


def test_fasttext_keeps_its_texts_from_others_and_removes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = FastText(0)
    seen = []

    def train(**given):
        file = Path(given["input"])
        seen.append(
            (
                file.parent,
                stat.S_IMODE(file.stat().st_mode),
                file.read_text(encoding="utf-8").count("\n"),
            )
        )
        raise RuntimeError

    monkeypatch.setattr(model._library, "train_supervised", train)
    with pytest.raises(RuntimeError):
        model.fit(TEXTS, CLASSES)
    assert seen == [(tmp_path, 0o600, 16)] and list(tmp_path.iterdir()) == []


def test_fasttext_without_its_library_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "floret", None)
    with pytest.raises(
        RequestError, match=r"fasttext needs the package floret.*evaluation\.classifier"
    ):
        FastText(0)


MARKS = [
    "A b, a b.",
    "a B a",
    "c!",
    "",
    "b a\n\nb",
    "c d",
    "d c Ünd ünd",
    "ünd 3.14 ␞ e",
    "␞ e; x_y x_y",
]


def random_texts(seed, n=60):
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{rng.geometric(0.1)}" for _ in range(rng.integers(0, 30))) for _ in range(n)
    ]


def library(learnt, asked):
    """Return scikit-learn's features of the same texts; their columns may be in another order."""
    vectorizer = TfidfVectorizer(
        lowercase=True,
        token_pattern=r"\w+|[^\w\s]",
        ngram_range=(1, 2),
        min_df=2,
        sublinear_tf=True,
    ).fit(learnt)
    return np.vstack([vectorizer.transform(one).toarray() for one in (learnt, asked)])


def own(learnt, asked):
    model = TfidfLogistic(0).fit(learnt, np.arange(learnt.shape[0]) % 2)
    return np.vstack([model.features(counts).toarray() for counts in (learnt, asked)])


def in_order(features):
    return features[:, np.lexsort(features.round(9))]


@pytest.mark.parametrize("made", [MARKS * 2, random_texts(1)])
def test_features_of_a_part_are_those_of_the_library_for_that_part(made):
    half = len(made) // 2
    (counted,) = CountedTexts.each(made)
    features = own(
        counted.take(np.arange(half)).counts, counted.take(np.arange(half, len(made))).counts
    )
    assert np.allclose(in_order(features), in_order(library(made[:half], made[half:])), atol=1e-12)


def test_the_classifier_learns_the_same_from_counted_texts():
    one = random_texts(3, 200)
    other = random_texts(4, 200)
    classes = ["long" if len(text.split()) > 14 else "short" for text in one]
    learnt, asked = CountedTexts.each(one, other)
    plain = Linear(0).fit(one, classes).predict(other)
    assert len(set(plain)) == 2
    assert Linear(0).fit(learnt, classes).predict(asked) == plain
    assert Linear(0).fit(learnt, classes).predict(other) == plain
    assert Linear(0).fit(one, classes).predict(asked) == plain
