"""The classifiers: what they learn, that nothing else decides, and what they do when there is nothing to learn."""

import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.evaluation.classifier import CLASSIFIERS, SEPARATOR, joined

GOOD = [f"a lovely film number {i} , really" for i in range(8)]
BAD = [f"a dreadful film number {i} , really" for i in range(8)]
TEXTS, CLASSES = GOOD + BAD, ["good"] * 8 + ["bad"] * 8


@pytest.mark.parametrize("name", ["linear", "fasttext"])
def test_learns_the_word_that_decides_and_no_class_that_nothing_decides(name: str) -> None:
    model = CLASSIFIERS[name](0).fit(TEXTS, CLASSES)
    assert model.name == name
    assert model.predict(["Lovely!", "so dreadful"]) == ["good", "bad"]
    crossed = CLASSIFIERS[name](0).fit(TEXTS, ["x", "y"] * 8)  # each class has half of the good and half of the bad
    decided = set(model.predict(GOOD + BAD)), set(crossed.predict(["lovely"])) - set(crossed.predict(["dreadful"]))
    assert decided == ({"good", "bad"}, set())


def test_linear_sees_punctuation_single_letters_and_order() -> None:
    for one, other in (
        ("what . then", "what ! then"),
        ("word a word", "word b word"),
        ("not bad good", "bad not good"),
    ):
        model = CLASSIFIERS["linear"](0).fit([one] * 4 + [other] * 4, ["one"] * 4 + ["other"] * 4)
        assert model.predict([one, other]) == ["one", "other"]


def test_linear_does_not_see_capitals_and_layout() -> None:
    model = CLASSIFIERS["linear"](0).fit(["A Film\n\nhere"] * 4 + ["a film here"] * 5, ["one"] * 4 + ["other"] * 5)
    assert model.predict(["A FILM here"]) == ["other"]  # the same text: the more frequent class


@pytest.mark.parametrize("texts", [["", "...", "a b", "c d e", "f"], [""] * 5])
def test_texts_that_share_no_feature_give_the_most_frequent_class(texts: list[str]) -> None:
    model = CLASSIFIERS["linear"](0).fit(texts, ["x", "y", "y", "x", "y"])
    assert model.predict(["a b", "f", ""]) == ["y"] * 3


@pytest.mark.parametrize("name", ["linear", "fasttext"])
def test_learning_again_gives_the_same(name: str) -> None:
    texts = [" ".join(f"w{(7 * i + j * j) % 90}" for j in range(30)) for i in range(60)]
    classes = [str(i % 3) for i in range(60)]
    one, other = (CLASSIFIERS[name](3).fit(texts[:40], classes[:40]).predict(texts[40:]) for _ in range(2))
    assert one == other and len(set(one)) == 3


def test_linear_is_fitted_by_one_thread_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    fit = LogisticRegression.fit

    def recorded(*arguments):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(*arguments)

    monkeypatch.setattr(LogisticRegression, "fit", recorded)
    with threadpool_limits(limits=2):
        CLASSIFIERS["linear"](0).fit(TEXTS, CLASSES)
    assert threads and set(threads) == {1}


def test_pairs_are_joined_by_a_token_of_its_own() -> None:
    assert joined(["a", "b"], ["c", None]) == [f"a {SEPARATOR} c", "b"]
    pairs = joined(["left"] * 4 + ["right"] * 4, ["right"] * 4 + ["left"] * 4)
    model = CLASSIFIERS["linear"](0).fit(pairs, ["one"] * 4 + ["other"] * 4)
    assert model.predict(joined(["left", "right"], ["right", "left"])) == ["one", "other"]
