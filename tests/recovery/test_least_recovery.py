"""The recovery of a reader who sees no output: a limit below which no ε of any mechanism comes."""

from pathlib import Path

import numpy as np
import pytest

from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.model import Model
from lexveil.readers import counted_words, public_words
from lexveil.readers.bands import CONTENT
from lexveil.readers.counted_words import CountedWords, below_least
from lexveil.readers.public_words import PublicWords

WORDS = 300  # of each band
KEEP = Policy("keep", "keep", "sample")


def counted(policy):
    """The stop words "the" and "at", and four more words as frequent; "cat" and "dog" always stand
    after "the", "noon" and "dawn" after "at", and the sentence ends.
    """
    tokens = ["the", "at", "cat", "dog", "noon", "dawn"]
    space = WordSpace(tokens, np.empty((6, 0), np.float32), np.full(6, 10_000))
    first = np.array([0, 0, 1, 1])
    bigrams = Bigrams.of(first, np.array([2, 3, 4, 5]), np.full(4, 5_000), len(tokens))
    vocabulary = Vocabulary.of(tokens, space.vectors, policy)
    return CountedWords.of(space, vocabulary, bigrams, policy, "en")


def test_words_that_stay_tell_of_those_beside_them():
    """A reader of "the …" has two words to guess among; where stop words are perturbed, four."""
    perturbed = Policy("perturb", "keep", "sample")
    assert counted(KEEP).least()[CONTENT] == pytest.approx(1 / 2, abs=0.06)
    assert counted(perturbed).least()[CONTENT] == pytest.approx(1 / 4, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["S1", "S3"])
def test_it_is_what_the_smallest_epsilon_leaves(built, strategy, monkeypatch):
    """At an ε that tells nothing, TEM draws any word, and its exact reader is this one."""
    monkeypatch.setattr(counted_words, "UNSEEN", WORDS)
    monkeypatch.setattr(public_words, "WORDS_OF_A_BAND", WORDS)
    model = Model.load(Path(), "own")
    words = PublicWords.of(model, "tem", strategy, Policy.of(strategy, "keep", "keep", "sample"))
    least = words.counted.least()
    at_smallest = words.expected(2.0**-29)
    for band, share in least.items():
        assert share == pytest.approx(at_smallest.overall(at_smallest.recovered, band), abs=1e-12)
    at_large = words.expected(2.0**5)
    assert at_large.overall(at_large.recovered) > least["all"]


def test_the_reason_names_the_share_and_the_way_out():
    why = below_least(0.0672, "content")
    reader = "a reader who sees no output is already expected to name 6.7% of the content words"
    assert why.startswith(f"out of reach: {reader}")
    assert "ask for more" in why
