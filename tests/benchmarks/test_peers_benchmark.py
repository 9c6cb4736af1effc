"""What is said of the public peers follows from their output, and a faulty one is found out."""

import argparse
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers.adapters import FAILED
from benchmarks.peers.judge import black_box, distances_of, verdict
from benchmarks.peers.restated import Gram, Madlib, gst, mst

WORDS = peers.made_words(peers.SMALL)
VECTORS = peers.small_vectors()
DRAWS = 4_000
RNG = np.random.default_rng(2)


@cache
def drawn(keeps: float) -> dict[str, list[str]]:
    """Draws of a peer that adds the noise it claims, but leaves a share of words as they are."""
    replace, rng = Madlib(WORDS, VECTORS, 2.0), np.random.default_rng(1)
    replace.rng = np.random.default_rng(0)
    return {
        word: [word if rng.random() < keeps else replace(word) for _ in range(DRAWS)] for word in WORDS[: peers.INPUTS]
    }


def excluded(word: str) -> str:
    """The nearest word that is not the input: the slip that the audit's two near words are there for."""
    place = VECTORS[WORDS.index(word)]
    noise = RNG.standard_normal(peers.PLACES)
    noise *= RNG.gamma(peers.PLACES, 1 / 60.0) / np.linalg.norm(noise)
    distance = np.linalg.norm(VECTORS - (place + noise), axis=1)
    distance[WORDS.index(word)] = np.inf
    return WORDS[int(distance.argmin())]


def test_a_peer_that_never_gives_the_input_back_is_found_out() -> None:
    some = {word: [excluded(word) for _ in range(400)] for word in WORDS[: peers.INPUTS]}
    assert black_box(some, WORDS, distances_of("vickrey", WORDS, VECTORS, None), 60.0).violation


@pytest.mark.parametrize(("keeps", "violates"), [(0.0, False), (0.9, True)])
def test_a_peer_that_keeps_words_is_found_out(keeps: float, violates: bool) -> None:
    distances = distances_of("madlib", WORDS, VECTORS, None)
    assert black_box(drawn(keeps), WORDS, distances, 2.0).violation == violates


def test_an_error_is_an_output_like_any_other() -> None:
    some = drawn(0.0) | {WORDS[0]: [FAILED] * DRAWS}
    result = black_box(some, WORDS, distances_of("madlib", WORDS, VECTORS, None), 2.0)
    assert result.violation
    assert verdict([result], DRAWS, repeats=False).startswith("VIOLATED")


def test_what_the_paper_prints_loses_words() -> None:
    """By hand: Algorithm 1 jumps over two words after a single one, Algorithm 2 over a word that was there before."""
    pairs: dict[Gram, float] = {("new", "york"): 3.0}
    triples: dict[Gram, float] = {("in", "new", "york"): 5.0}
    assert gst("we were here in new york".split(), pairs, triples) == [("we",), ("in", "new", "york")]
    assert gst("new york was big".split(), pairs, triples) == [("new", "york"), ("was",)]
    assert mst("in new york and in rome".split(), pairs, triples) == [("in", "new", "york"), ("and",), ("rome",)]


def test_a_peer_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    peers.data_of_nltk(tmp_path / "nltk")
    sentences = peers.made_sentences(WORDS)[:20]
    files = peers.write_vectors(WORDS, VECTORS, tmp_path / "small")
    material = {"words": WORDS, "sentences": sentences, "large": files, "small_words": WORDS}
    material |= {"small_vectors": VECTORS, "small": files}
    options = argparse.Namespace(epsilon=10.0, seconds=0.05, samples=200, minutes=1)
    rows = peers.measure("clmldp", ["madlib", "gst"], Path(sys.executable), material, options, tmp_path)
    assert [row["mechanism"] for row in rows] == ["madlib", "gst"]
    assert all(row["rate"] > 0 for row in rows)
    assert (rows[0]["clear"], rows[0]["lost"], rows[0]["added"]) == (1.0, 0.0, 0.0)
    assert rows[0]["bound"].startswith("no violation seen at 200 samples")
    assert rows[1]["lost"] > 0.1
