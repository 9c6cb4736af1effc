"""Similarity and perplexity by hand; Kneser-Ney against the formulas written out with
dictionaries."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.language_models import language_model
from lexveil.core.language_models.base import PerplexityScores
from lexveil.core.language_models.kneser_ney import DISCOUNT, train
from lexveil.core.language_models.language_model import NgramModel
from lexveil.lab.evaluation import encoder
from lexveil.lab.evaluation.encoder import TfidfMean
from lexveil.lab.evaluation.metrics import similarity
from lexveil.lab.evaluation.metrics.base import drawn
from lexveil.lab.evaluation.metrics.perplexity import perplexity_entry
from lexveil.lab.evaluation.metrics.similarity import cosines, similarity_entry

WORDS = ["red", "green", "blue"]
VECTORS = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)


def test_weights_and_means_by_hand():
    """n = 4; red is in 3 texts, green and blue in 1 each."""
    made = TfidfMean.fit(WORDS, VECTORS, ["Red green.", "red red", "red blue", "zebra"])
    assert made.idf == pytest.approx([np.log(5 / 4) + 1, np.log(5 / 2) + 1, np.log(5 / 2) + 1])
    red, green, _ = made.idf
    encoded = made.encode(["red GREEN, red! zebra", "blue", "zebra.", ""])
    assert encoded.dtype == np.float32
    assert encoded[0] == pytest.approx([2 * red / (2 * red + green), green / (2 * red + green)])
    assert encoded[1:].tolist() == [[-1, 0], [0, 0], [0, 0]]


def test_cosines_by_hand():
    """The pairs are equal, orthogonal and opposite texts, then texts that are unknown before,
    after, or both.
    """
    original = ["red", "red", "red", "zebra", "green", "zebra"]
    private = ["red red", "green", "blue", "red", "okapi", ""]
    cosine, *unknown = cosines(TfidfMean(WORDS, VECTORS, np.ones(3)), original, private)
    assert (
        cosine[:3] == pytest.approx([1, 0, -1]) and np.isnan(cosine[3:]).all() and unknown == [2, 2]
    )
    # 0.5 and 1 of three texts: mean 0.75, standard deviation 0.25·√2.
    assert similarity_entry(np.array([0.5, np.nan, 1.0]), 0, 1) == {
        "left_out": None,
        "n_texts": 3,
        "n_compared": 2,
        "n_original_unknown": 0,
        "n_private_unknown": 1,
        "mean": 0.75,
        "sd": 0.353553391,
    }
    assert similarity_entry(np.array([0.5]), 0, 0)["sd"] is None
    assert set(similarity_entry(np.array([np.nan]), 1, 1)) == {"left_out"}


NAMES = ["the", "cat", "sat", "."]
# the cat sat . | the cat .
IDS = np.array([0, 1, 2, 3, 0, 1, 3])
OFFSETS = np.array([0, 4, 7])


def toy():
    return NgramModel(train(IDS, OFFSETS, len(NAMES)), NAMES)


def test_texts_are_cut_into_sentences_and_summed():
    """The first text has two sentences of 4 and 3 tokens, each with its end; the second is empty;
    the third is one unknown word."""
    model = toy()
    scores = model.score(["The cat sat.\nThe cat.", "", "The dog."])
    assert scores.n_tokens.tolist() == [9, 0, 4]
    assert scores.n_unknown.tolist() == [0, 0, 1]
    unknown = model.model.log_probability(np.array([0, -1, 3]), np.array([0, 3]))
    assert scores.log_sum == pytest.approx(
        [model.model.log_probability(IDS, OFFSETS).sum(), 0, unknown.sum()]
    )
    with pytest.raises(ParameterError, match="trained on 4 words and given the names of 3"):
        NgramModel(model.model, NAMES[:3])


def test_blocks_change_nothing(monkeypatch):
    texts = [
        " ".join(np.random.default_rng(i).choice([*WORDS, *NAMES, "zebra"], i % 5))
        for i in range(23)
    ]

    def measured():
        made = TfidfMean.fit(WORDS, VECTORS, texts)
        scores = toy().score(texts)
        figures = (
            made.idf,
            *cosines(made, texts, texts[::-1]),
            scores.log_sum,
            scores.n_tokens,
            scores.n_unknown,
        )
        return [np.nan_to_num(figure).tolist() for figure in figures]

    whole = measured()
    for module in (encoder, similarity, language_model):
        monkeypatch.setattr(module, "TEXTS_AT_A_TIME", 4)
    assert measured() == whole


def test_perplexity_by_hand():
    """4 and 2 of texts of one and three tokens: mean 3, of all as one (4·8)^(1/4); a text without
    tokens has none."""
    entry = perplexity_entry(
        PerplexityScores(np.log([1 / 4, 1, 1 / 8]), np.array([1, 0, 3]), np.array([1, 0, 0]))
    )
    assert (entry["n_texts"], entry["n_tokens"], entry["n_unknown"]) == (3, 4, 1)
    assert (entry["mean"], entry["corpus"]) == (3, pytest.approx(32**0.25))
    for nothing in (toy().score([]), toy().score(["", ""])):
        assert set(perplexity_entry(nothing)) == {"left_out"}


@pytest.mark.parametrize(
    ("limit", "n_drawn"), [(1, 1), (2, 1), (3, 1), (4, 2), (20, 10), (99, 10), (None, 10)]
)
def test_both_texts_of_a_pair_count(limit, n_drawn):
    assert len(drawn([2] * 10, limit, np.random.default_rng(1))) == n_drawn


def flat(sentences):
    sizes = [len(sentence) for sentence in sentences]
    return np.array([w for one in sentences for w in one], dtype=np.int64), np.cumsum([0, *sizes])


class Plain:
    """The formulas of the module's head, one n-gram at a time."""

    def __init__(self, sentences, n_words, order):
        self.n_words = n_words
        self.order = order
        raw = Counter()
        for sentence in sentences:
            marked = self.marked(sentence)
            for length in range(1, order + 1):
                raw.update(tuple(marked[i : i + length]) for i in range(len(marked) - length + 1))
        before = defaultdict(set)
        for gram in raw:
            before[gram[1:]].add(gram[0])
        self.a = {
            gram: count if len(gram) == order or gram[0] == "<s>" else len(before[gram])
            for gram, count in raw.items()
            if gram != ("<s>",)
        }
        self.d = {}
        for length in range(1, order + 1):
            counts = Counter(a for gram, a in self.a.items() if len(gram) == length)
            both = counts[1] and counts[2]
            self.d[length] = counts[1] / (counts[1] + 2 * counts[2]) if both else DISCOUNT

    def marked(self, sentence):
        return ["<s>", *(w if 0 <= w < self.n_words else "<unk>" for w in sentence), "</s>"]

    def p(self, word, history):
        followers = {gram[-1]: a for gram, a in self.a.items() if gram[:-1] == history}
        lower = self.p(word, history[1:]) if history else 1 / (self.n_words + 2)
        if not followers:
            return lower
        d = self.d[len(history) + 1]
        total = sum(followers.values())
        return max(followers.get(word, 0) - d, 0) / total + d * len(followers) / total * lower

    def log_probability(self, sentences):
        return [
            math.log(self.p(marked[i], tuple(marked[max(0, i - self.order + 1) : i])))
            for marked in map(self.marked, sentences)
            for i in range(1, len(marked))
        ]


def some(seed, n, n_words, longest=9):
    """Sentences with repetitions; some empty, some with unknown words (-1)."""
    rng = np.random.default_rng(seed)
    return [
        (rng.zipf(1.6, rng.integers(0, longest)) % (n_words + 1) - 1).tolist() for _ in range(n)
    ]


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_every_probability_is_that_of_the_formulas(seed, order):
    learned = some(seed, 60, 12)
    other = some(seed + 100, 30, 14)
    got = train(*flat(learned), n_words=12, order=order).log_probability(*flat(other))
    plain = Plain(learned, 12, order)
    assert got == pytest.approx(plain.log_probability(other), rel=1e-12)
    wrong = Plain(learned[:-20], 12, order).log_probability(other)
    assert not np.allclose(got, wrong)
