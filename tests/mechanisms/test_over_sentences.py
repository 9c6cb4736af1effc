"""Mechanisms that add noise to the vector of a unit, over the sentences of a bank."""

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.over_sentences import NOISY, OF_VECTORS, sentence_mechanism
from lexveil.io.request import OVER_SENTENCES

N_SENTENCES = 200
DIMENSIONS = 6
RADIUS = 1.0


@pytest.fixture(scope="module")
def vectors():
    drawn = np.random.default_rng(1).standard_normal((N_SENTENCES, DIMENSIONS))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def queries():
    """Vectors that are not a sentence of the bank, and the zero vector."""
    drawn = np.random.default_rng(2).standard_normal((5, DIMENSIONS)) * 0.3
    return np.vstack([drawn, np.zeros(DIMENSIONS)]).astype(np.float32)


def made(name, vectors):
    mechanism = sentence_mechanism(name, vectors, RADIUS, {})
    assert isinstance(mechanism, Madlib)
    return mechanism


def test_requests_name_the_mechanisms_that_there_are():
    assert OVER_SENTENCES == tuple(OF_VECTORS) == ("tem", *NOISY)


@pytest.mark.parametrize("name", NOISY)
def test_rows_of_the_bank_are_queries_of_their_own(name, vectors):
    mechanism = made(name, vectors)
    ids = np.arange(N_SENTENCES)
    epsilon = np.full(N_SENTENCES, 8.0)
    noise = mechanism.noise(epsilon, np.random.default_rng(3))
    of_rows = mechanism.replace(ids, epsilon, noise)
    assert (mechanism.replace_queries(vectors, ids, epsilon, noise) == of_rows).all()


@pytest.mark.parametrize("name", ["madlib", "mahalanobis"])
def test_the_sentence_nearest_to_the_noisy_query_comes_out(name, vectors, queries):
    mechanism = made(name, vectors)
    of = np.repeat(np.arange(len(queries)), 100)
    epsilon = np.full(len(of), 10.0)
    noise = mechanism.noise(epsilon, np.random.default_rng(4))
    points = queries[of] + noise
    apart = np.linalg.norm(vectors.astype(np.float64) - points[:, None], axis=2)
    drawn = mechanism.replace_queries(queries, of, epsilon, noise)
    assert (drawn == apart.argmin(axis=1)).all()


def test_vickrey_takes_the_nearest_or_the_second(vectors, queries):
    mechanism = made("vickrey", vectors)
    of = np.zeros(2, dtype=np.int64)
    noise = np.zeros((2, DIMENSIONS + 1))
    noise[1, -1] = 0.999999
    apart = np.linalg.norm(vectors.astype(np.float64) - queries[0], axis=1)
    drawn = mechanism.replace_queries(queries, of, np.ones(2), noise)
    assert drawn.tolist() == np.argsort(apart)[:2].tolist()


@pytest.mark.parametrize("name", NOISY)
def test_no_two_vectors_are_farther_apart_than_is_said(name, vectors):
    mechanism = made(name, vectors)
    ends = np.vstack([vectors, -vectors])
    of_both = made(name, vectors)
    of_both.vectors = ends  # the metric is that of the bank
    first = np.repeat(np.arange(len(ends)), len(ends))
    second = np.tile(np.arange(len(ends)), len(ends))
    assert of_both.distance(first, second).max() <= 2 * RADIUS * mechanism.stretch + 1e-6


@pytest.mark.parametrize("name", NOISY)
def test_each_says_the_distance_of_its_claim(name, vectors):
    mechanism = made(name, vectors)
    assert "sentence vectors" in mechanism.metric == OF_VECTORS[name]
    assert "embedding" not in mechanism.metric + mechanism.unit
    assert type(mechanism).metric != mechanism.metric or name not in NOISY


def test_a_text_cannot_be_left_out_of_a_bank(vectors):
    with pytest.raises(ParameterError, match="not a sentence of the bank"):
        sentence_mechanism("vickrey", vectors, RADIUS, {"exclude_input": True})
