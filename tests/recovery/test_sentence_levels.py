"""Levels of banks: what a reader finds out, by an independent computation, and which epsilon is
taken."""

from itertools import product

import numpy as np
import pytest

from lexveil.base.errors import RequestError
from lexveil.core.embeddings.sentences import CutTexts, Units
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.protection import LEVELS, Shares
from lexveil.readers import sentence_levels
from lexveil.readers.bands import BANDS
from lexveil.readers.bank_levels import found_level
from lexveil.readers.sentence_levels import (
    PUBLIC_SEED,
    LevelSearch,
    PublicSources,
    SentenceShares,
    epsilon_of,
    found_at,
    named_by,
)

FUNCTION, FREQUENT, RARE = (BANDS.index(band) for band in ("function", "frequent", "rare"))


def unit_vectors(n, rng):
    vectors = rng.standard_normal((n, 4))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (0.999 * vectors / lengths).astype(np.float32)


def sources_of(words, bands, per_text=2, n_sentences=1):
    """Texts of words, whose first ``n_sentences`` words each begin a sentence."""
    rows = np.array([row for text in words for row in text], dtype=np.int64)
    starts = np.cumsum([0, *map(len, words)])
    begins = {
        first + place
        for first, text in zip(starts[:-1].tolist(), words, strict=True)
        for place in range(min(n_sentences, len(text)))
    }
    sentences = np.array([*sorted(begins), len(rows)], dtype=np.int64)
    return PublicSources.of(
        CutTexts(Units(rows, starts), Units(rows, sentences)),
        per_text,
        lambda units: unit_vectors(len(units), np.random.default_rng(0)),
        np.array(bands, dtype=np.uint8),
    )


def test_the_source_is_found_by_the_exact_channel():
    """Each output is compared with each candidate by the law of the mechanism itself."""
    rng = np.random.default_rng(1)
    mechanism = SentenceDraws(unit_vectors(60, rng), 1.0)
    sources = sources_of([[0]] * 40, [FREQUENT])
    n_found = 0.0
    spent = np.full(80, 8.0)
    noise = mechanism.noise(spent, stream(PUBLIC_SEED, "sentence levels"))
    of = np.repeat(np.arange(40), 2)
    rows = mechanism.replace_queries(sources.vectors, of, spent, noise)
    law = mechanism.log_pmf_of(sources.vectors, np.full(40, 8.0))
    for source in range(40):
        scores = [sum(law[other, row] for row in rows[2 * source :][:2]) for other in range(40)]
        n_found += int(np.argmax(scores)) == source
    assert 2 < n_found < 38
    assert found_at(mechanism, sources, 8.0).linkage == pytest.approx(n_found / 40)


def test_the_source_of_sentences_is_found_among_texts_of_as_many():
    """Every second of 40 texts has three sentences, the others have one; of each sentence comes
    one, and the first is compared with the first.
    """
    mechanism = SentenceDraws(unit_vectors(60, np.random.default_rng(1)), 1.0)
    sizes = [3 if number % 2 else 1 for number in range(40)]
    texts = [[0] * size for size in sizes]
    sources = sources_of(texts, [FREQUENT], per_text=None, n_sentences=3)
    spent = np.full(80, 8.0)
    noise = mechanism.noise(spent, stream(PUBLIC_SEED, "sentence levels"))
    rows = mechanism.replace_queries(sources.vectors, np.arange(80), spent, noise)
    law = mechanism.log_pmf_of(sources.vectors, spent)
    first = np.cumsum([0, *sizes])
    n_found = 0.0
    for source, size in enumerate(sizes):
        scores = {
            other: sum(law[first[other] + one, rows[first[source] + one]] for one in range(size))
            for other in range(40)
            if sizes[other] == size
        }
        n_found += max(scores, key=lambda other: scores[other]) == source
    assert 2 < n_found < 38
    assert found_at(mechanism, sources, 8.0).linkage == pytest.approx(n_found / 40)


def test_words_are_named_by_the_chances_of_the_other_texts():
    """The adversary takes each output for another text, and names as many words as the source has.
    Output 1 is taken for text 2: words 1 and 3 of 1, 2, 3 are right. Output 2 is taken for text 3,
    which has word 2 alone, then for text 1: words 1 and 3 of 1, 3, 4 are right. Output 3 is taken
    for text 1, whose words 1 and 3 are in text 2 as well: word 1 is not word 2. Words 3 and 4 are
    rare."""
    bands = [FUNCTION, FREQUENT, FREQUENT, RARE, RARE]
    sources = sources_of([[0, 1, 2, 3, -1], [0, 0, 1, 3, 4], [2]], bands)
    likely = np.array([[0.0, -1.0, -50.0], [-90.0, 0.0, -50.0], [-3.0, -9.0, 0.0]])
    assert named_by(sources, likely) == pytest.approx(Shares(4 / 7, 2 / 3))


def test_of_an_output_that_no_other_text_gives_all_others_are_as_likely():
    """The reader thinks of both other texts, which have word 2 and word 3, and names word 2; the
    text itself has no part in that.
    """
    sources = sources_of([[1], [2], [3]], [FUNCTION, FREQUENT, FREQUENT, FREQUENT])
    alone = np.where(np.eye(3) > 0, 0.0, -np.inf)
    assert named_by(sources, alone) == Shares(0.0, 0.0)


def search_of(curve, blind, monkeypatch):
    monkeypatch.setattr(sentence_levels, "found_at", lambda *args: curve(args[2]))
    search = LevelSearch(None, sources_of([[0], [1]], [FREQUENT, RARE]))
    search.blind = blind
    return search


NOBODY = Shares(0.0, 0.0)


@pytest.mark.parametrize(
    ("limit", "named"), [*product((0.05, 0.2, 0.5), (Shares(1.0, 1.0), Shares(0.5, 0.5)))]
)
def test_the_largest_epsilon_that_keeps_to_both(limit, named, monkeypatch):
    """Linkage is ε/100, words are named as ε/64."""

    def curve(epsilon):
        return SentenceShares(min(epsilon / 100, 1.0), min(epsilon / 64, 1.0), 0.0)

    search = search_of(curve, NOBODY, monkeypatch)
    step = search.largest(limit, named)
    epsilon = epsilon_of(step)
    above = epsilon * 2 ** (1 / 8)
    assert search.at(step) == curve(epsilon)
    assert curve(epsilon).linkage <= limit and curve(epsilon).content <= named.content
    assert curve(above * 1.001).linkage > limit or curve(above * 1.001).content > named.content


def test_no_level_is_sought_beyond_the_peak(monkeypatch):
    def curve(epsilon):
        return SentenceShares(0.3 - abs(np.log2(epsilon / 16)) / 20, 0.0, 0.0)

    assert epsilon_of(search_of(curve, NOBODY, monkeypatch).largest(0.5, NOBODY)) == 16.0


def test_what_is_named_without_any_output_is_no_target(monkeypatch):
    search = search_of(lambda _: SentenceShares(0.0, 0.14, 0.03), Shares(0.1, 0.02), monkeypatch)
    found = found_level([search], "strong", LEVELS["strong"])
    assert (found.content, found.content_without) == (0.14, 0.1)
    assert found.missed == (
        "14.0% of the content words instead of 5.0%, where a reader without any output names "
        "10.0%; 3.0% of the rare words instead of 1.0%, where a reader without any output names "
        "2.0%"
    )


def test_a_level_that_keeps_what_it_allows_is_not_missed(monkeypatch):
    search = search_of(lambda _: SentenceShares(0.05, 0.05, 0.01), NOBODY, monkeypatch)
    assert found_level([search], "strong", LEVELS["strong"]).missed is None


def test_a_level_holds_for_each_kind_of_text(monkeypatch):
    """Sources of the first kind are found as ε/100, of the second as ε/50: of all the 20 of 100
    that are allowed, the second gives the epsilon, and both the figures.
    """

    def of_kind(divisor, named):
        search = search_of(lambda _: None, NOBODY, monkeypatch)
        search.at = lambda step: SentenceShares(min(epsilon_of(step) / divisor, 1.0), named, 0.0)
        return search

    both = found_level([of_kind(100, 0.1), of_kind(50, 0.0)], "balanced", LEVELS["balanced"])
    alone = found_level([of_kind(50, 0.0)], "balanced", LEVELS["balanced"])
    assert (both.epsilon, both.linkage) == (alone.epsilon, alone.linkage)
    assert both.content == 0.1


def test_a_level_that_no_epsilon_keeps_to_is_refused(monkeypatch):
    search = search_of(lambda _: SentenceShares(0.4, 0.0, 0.0), NOBODY, monkeypatch)
    with pytest.raises(RequestError, match=r"0\.25, a reader finds 40\.0% of the sources among 2"):
        search.largest(0.2, NOBODY)


def test_epsilons_are_steps_of_an_eighth():
    assert [epsilon_of(step) for step in (-8, 0, 1, 8)] == [0.5, 1.0, 1.091, 2.0]
