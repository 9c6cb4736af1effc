"""Statements about the public peers follow from their output, and a faulty output is detected."""

import argparse
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers.judge import black_box, distances_of
from benchmarks.peers.restated import Madlib

WORDS = peers.made_words(peers.SMALL)
VECTORS = peers.small_vectors()
DRAWS = 4_000


@cache
def drawn(keeps):
    """Draws of a peer that adds the noise it claims, but leaves a share of words as they are."""
    replace = Madlib(WORDS, VECTORS, 2.0)
    rng = np.random.default_rng(1)
    replace.rng = np.random.default_rng(0)
    return {
        word: [word if rng.random() < keeps else replace(word) for _ in range(DRAWS)]
        for word in WORDS[: peers.INPUTS]
    }


@pytest.mark.parametrize(("keeps", "violates"), [(0.0, False), (0.9, True)])
def test_a_peer_that_keeps_words_is_found_out(keeps, violates):
    distances = distances_of("madlib", WORDS, VECTORS, None)
    assert black_box(drawn(keeps), WORDS, distances, 2.0).violation == violates


def test_a_peer_is_measured_in_a_process_of_its_own(tmp_path):
    peers.data_of_nltk(tmp_path / "nltk")
    sentences = peers.made_sentences(WORDS)[:20]
    files = peers.write_vectors(WORDS, VECTORS, tmp_path / "small")
    material = {"words": WORDS, "sentences": sentences, "large": files, "small_words": WORDS}
    material |= {"small_vectors": VECTORS, "small": files}
    options = argparse.Namespace(epsilon=10.0, seconds=0.05, samples=200, minutes=1)
    rows = peers.measure(
        "clmldp", ["madlib", "gst"], Path(sys.executable), material, options, tmp_path
    )
    assert [row["mechanism"] for row in rows] == ["madlib", "gst"]
    assert all(row["rate"] > 0 for row in rows)
    assert (rows[0]["clear"], rows[0]["lost"], rows[0]["added"]) == (1.0, 0.0, 0.0)
    assert rows[0]["bound"].startswith("no violation seen with 200 samples")
    assert rows[1]["lost"] > 0.1
