"""Bigram counts: by SQL as by counting one pair after another, and of single words as of the text
cut into them."""

import shutil
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from lexveil.core.embeddings.bigrams import Bigrams, _order
from lexveil.io.artifacts.embeddings import read_bigrams, write_bigrams
from lexveil.io.artifacts.packaged_model import add_bigrams
from lexveil.io.config import MachineParams
from lexveil.lab.collocations.adjacent_tokens import count_bigrams
from lexveil.lab.data.model_verification import UnsoundModelError, verify_folder

TOKENS = ["new", "york", "new_york", "is", "big_apple_pie", "big", "apple", "pie", "."]


def sentences(n=300):
    """Random sentences of the tokens, and of a word that no embedding knows."""
    rng = np.random.default_rng(5)
    return [
        [[*TOKENS, "rare"][i] for i in rng.integers(10, size=rng.integers(1, 9))] for _ in range(n)
    ]


def pairs(some):
    """Counts by tokens."""
    first = some.first.tolist()
    second = some.ids.tolist()
    return {
        (TOKENS[a], TOKENS[b]): c
        for a, b, c in zip(first, second, some.counts.tolist(), strict=True)
    }


def counted(tmp_path, lines, **limits):
    """Count bigrams by the query."""
    file = tmp_path / "lines.txt"
    file.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return count_bigrams(file, TOKENS, MachineParams(), **limits)


def plainly(lines):
    """Pair by pair."""
    return Counter(pair for line in lines for pair in pairwise(line) if set(pair) <= set(TOKENS))


def test_the_query_counts_pairs_inside_sentences(tmp_path):
    """Pairs of known tokens that occur at least twice are counted; a limit keeps the most frequent
    ones. A round trip through the disk changes nothing.
    """
    expected = {pair: n for pair, n in plainly(sentences()).items() if n > 1}
    found = counted(tmp_path, sentences())
    assert pairs(found) == expected
    few = pairs(counted(tmp_path, sentences(), most=5))
    assert sorted(few.values()) == sorted(expected.values())[-5:]
    write_bigrams(found, tmp_path)
    assert pairs(read_bigrams(tmp_path)) == expected


@pytest.mark.parametrize("most", [30, 2**62])
def test_numbers_are_ordered(most):
    """Numbers are ordered even if they leave no bits for their positions."""
    numbers = np.random.default_rng(1).integers(most, size=1000)
    assert (numbers[_order(numbers)] == np.sort(numbers)).all() and len(
        {*_order(numbers).tolist()}
    ) == 1000


def test_single_words_are_counted_as_in_text_cut_into_them(tmp_path):
    """The end words of collocations count with their neighbours, and the words of a collocation
    with each other.
    """
    lines = sentences()
    found = counted(tmp_path, [*lines, *lines])  # so that no pair is there once
    counts = Counter(token for line in lines for token in line)
    of_words = found.of_words(TOKENS, 2 * np.array([counts[token] for token in TOKENS]))
    plain = plainly([" ".join(line).replace("_", " ").split(" ") for line in lines])
    assert pairs(of_words) == {pair: 2 * n for pair, n in plain.items()}
    some = found.only(np.array([3, 0]))
    assert some.first.tolist() == sorted(some.first.tolist())
    assert pairs(some.renumbered(np.array([3, 0]), len(TOKENS))) == {
        pair: n for pair, n in pairs(found).items() if set(pair) <= {"new", "is"}
    }


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("ids", [1, 1, 0]), ("ids", [0, 60_000, 1]), ("counts", [3, 0, 1]), ("starts", [0, 2])],
)
def test_a_model_with_unsound_counts_is_refused(packaged, tmp_path, name, wrong):
    """The faults are a repeated pair, a token that the model lacks, a pair with count 0, and too
    few tokens.
    """
    folder = tmp_path / "toy"
    shutil.copytree(packaged.folder, folder)
    sound = Bigrams(
        np.array([0, 2, *[3] * (len(packaged.tokens) - 1)]),
        np.array([0, 1, 0]),
        np.array([3, 2, 1]),
    )
    add_bigrams(folder, sound)
    assert verify_folder(folder)
    add_bigrams(folder, sound._replace(**{name: np.array(wrong)}))
    with pytest.raises(UnsoundModelError, match="bigrams"):
        verify_folder(folder)
