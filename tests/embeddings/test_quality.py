"""Figures of quality: on spaces small enough to see the answer, and against gensim's own
evaluation."""

import numpy as np
import pytest
from gensim.models import KeyedVectors

from lexveil.core.embeddings.intrinsic_evaluation import analogies, neighbour_samples, similarity
from lexveil.core.embeddings.word_space import WordSpace

RNG = np.random.default_rng(5)


def space_of(tokens, vectors, counts=None):
    counts = np.arange(len(tokens), 0, -1) if counts is None else np.asarray(counts)
    return WordSpace(tokens, np.asarray(vectors, dtype=np.float32), counts)


def test_neighbours_against_a_plain_scan():
    tokens = [f"w{i}" for i in range(300)] + [f"new_w{i}" for i in range(40)] + ["a_b_c", ","]
    space = space_of(
        tokens, RNG.normal(size=(len(tokens), 6)) * RNG.uniform(0.1, 9, size=(len(tokens), 1))
    )
    found = neighbour_samples(space)
    assert [len(found["unigram"][name]) for name in ("frequent", "medium", "rare")] == [3, 3, 3]
    assert [one["token"] for one in found["unigram"]["rare"]] == ["w240", "w270", "w297"]
    assert [one["token"] for one in found["trigram"]["medium"]] == ["a_b_c"]
    unit = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True).astype(np.float64)
    for one in [*found["unigram"]["frequent"], *found["bigram"]["rare"], *found["trigram"]["rare"]]:
        row = tokens.index(one["token"])
        cosine = unit @ unit[row]
        order = [i for i in np.argsort(-cosine) if i != row][:5]
        assert [near["token"] for near in one["neighbours"]] == [tokens[i] for i in order]
        assert [near["cosine"] for near in one["neighbours"]] == pytest.approx(
            cosine[order], abs=1e-4
        )
        assert one["count"] == len(tokens) - row


def test_similarity():
    angles = np.array([0, 10, 30, 80]) * np.pi / 180
    space = space_of(
        ["a", "b", "c", "d"],
        np.column_stack([np.cos(angles), np.sin(angles)]) * [[1], [5], [2], [9]],
    )
    pairs = [("a", "b", 9.0), ("a", "c", 5.0), ("a", "d", 1.0), ("a", "unknown", 3.0)]
    assert similarity(space, pairs) == {"pairs": 4, "pairs_known": 3, "spearman": 1.0}
    assert (
        similarity(space, [("a", "b", 1.0), ("a", "c", 5.0), ("a", "d", 9.0)])["spearman"] == -1.0
    )
    assert similarity(space, pairs[:2]) == {"pairs": 2, "pairs_known": 2, "spearman": None}
    # all alike: there is no order
    assert similarity(space, [("a", "b", 1.0)] * 3)["spearman"] is None


def test_analogies_as_gensim_counts_them(tmp_path):
    words = ["man", "woman", "king", "queen", "uncle", "aunt", *(f"w{i}" for i in range(200))]
    vectors = RNG.normal(size=(len(words), 8))
    step = RNG.normal(size=8)
    for first in (0, 2, 4):
        vectors[first + 1] = vectors[first] + step * RNG.uniform(0.5, 2)
    space = space_of(words, vectors)
    pairs = [
        ("man", "woman"),
        ("king", "queen"),
        ("uncle", "aunt"),
        ("w1", "w2"),
        ("prince", "princess"),
    ]
    sections = {
        "family": [(*a, *b) for a in pairs[:3] for b in pairs if a != b],
        "rest": [(*a, *b) for a in pairs[3:4] for b in pairs[:2]],
    }
    found = analogies(space, sections)
    file = tmp_path / "questions.txt"
    file.write_text(
        "".join(
            f": {name}\n" + "".join(" ".join(q) + "\n" for q in qs) for name, qs in sections.items()
        )
    )
    keyed = KeyedVectors(8)
    keyed.add_vectors(words, space.vectors)
    score, by_section = keyed.evaluate_word_analogies(str(file))
    assert {one["section"]: len(one["correct"]) for one in by_section[:-1]} == {
        name: one["correct"] for name, one in found["by_section"].items()
    }
    assert found["accuracy"] == pytest.approx(score, abs=1e-4) and 0 < score < 1
    assert (found["questions"], found["questions_known"]) == (14, 11)
    assert analogies(space, {"none": [("x", "y", "z", "q")]})["accuracy"] is None
