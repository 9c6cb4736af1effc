"""Whole texts through ``rewrite``, every strategy, both modes; and what goes wrong outside a mechanism is caught."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_toys import FALSE_ALARM, SameNoiseForEveryToken, Vickrey, WrongScale, WrongShape

from lexveil.accounting.budgets import SEGMENTATION_OF, STRATEGIES, Policy
from lexveil.accounting.guarantee import Claim, guarantee
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.auditing.audit import MODES
from lexveil.auditing.exact import distances_of
from lexveil.auditing.sampled import SampledResult, noise_reused, sampled_audit
from lexveil.auditing.texts import (
    Generators,
    Toy,
    claimed_losses,
    drawn_noises,
    generators_of,
    spent_too_much,
    text_budgets,
    text_sampler,
    toy_texts,
)
from lexveil.embeddings.exact_search import ExactSearch
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.mechanisms.tem import Tem
from lexveil.privatization.rewrite import Components, Rewritten, rewrite
from lexveil.text.encode import encode

pytestmark = pytest.mark.slow

EPSILON = 2.0
BUDGET = 3.2 * EPSILON  # as for texts of 3.2 words on average
SAMPLES = 1_200
FEW = 600
TRAINED = 3_000  # draws of a word where thousands may come out
SAMPLE = Policy("perturb", "keep", "sample")


def audit(
    strategy: str,
    mode: str = "experiment",
    make: Callable[[Any], Any] = Madlib,
    claimed: Policy = SAMPLE,
    done: Policy = SAMPLE,
    generators: Generators | None = None,
    overspend: float = 1.0,
    companion: str | None = None,
    promised: Callable[[Any], Any] = Madlib,
    toy: Toy | None = None,
    budget: float = BUDGET,
    samples: int = SAMPLES,
) -> SampledResult:
    """Audit ``claimed``, in the metric of ``promised``, where ``done`` and ``make`` are what really happens."""
    toy = toy or toy_texts(strategy, EPSILON, claimed)
    companion = companion or toy.companion
    mechanism = make(toy.vocabulary.vectors)
    texts = [companion, *toy.texts]
    planned = text_budgets(texts, toy.lexicon, toy.vocabulary, claimed, strategy, budget)
    plan = dict(zip(texts, (overspend * planned).tolist(), strict=True))

    def rewriter(batch: list[str], generator: Callable[[int], np.random.Generator]) -> Rewritten:
        per_text = np.array([plan[text] for text in batch])
        return rewrite(batch, per_text, Components(toy.lexicon, toy.vocabulary, mechanism, done), generator)

    distances = distances_of(promised(toy.vocabulary.vectors))
    allowed = claimed_losses(toy.texts, planned[1:], toy.lexicon, toy.vocabulary, claimed, distances)
    made = generators or generators_of(mode, 5, "suite", strategy)
    sampler = text_sampler(companion, toy.texts, rewriter, made)
    return sampled_audit(sampler, allowed, EPSILON, samples, 1 - FALSE_ALARM)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_in_both_modes(strategy: str, mode: str) -> None:
    """No violation, and a bound that is worth something. In release mode every run has its own noise."""
    result = audit(strategy, mode)
    assert not result.violation
    assert result.audited > 0.2 * EPSILON


def order_of(vectors: Any) -> Any:
    return np.argsort(vectors[:, 0], kind="stable")


def over(name: str) -> Callable[[Any], Any]:
    """Builds a registered mechanism over vectors, or over the list of them."""
    mechanism = MECHANISMS[name]
    return lambda vectors: mechanism(order_of(vectors) if mechanism.on_lists else vectors)


# All that claim something; madlib is above.
OTHERS = {name: over(name) for name in MECHANISMS if MECHANISMS[name].no_guarantee is None and name != "madlib"}


def test_no_mechanism_is_left_out() -> None:
    assert set(MECHANISMS) - set(OTHERS) == {"madlib", "truncated_gumbel"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", OTHERS)
def test_every_mechanism_and_strategy_in_both_modes(name: str, strategy: str, mode: str) -> None:
    """Few samples, so many combinations are affordable; the next test says that they would show what is broken."""
    result = audit(strategy, mode, make=OTHERS[name], promised=OTHERS[name], samples=FEW)
    assert not result.violation
    assert result.comparisons > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OTHERS)
def test_many_times_the_budget_is_caught_in_every_mechanism(name: str, mode: str) -> None:
    """Of a small budget: what few samples can show is some 3 nats, whatever is spent."""
    how: dict[str, Any] = {"make": OTHERS[name], "promised": OTHERS[name], "budget": 0.3 * BUDGET, "samples": FEW}
    assert audit("S3", mode, overspend=6.0, **how).violation
    assert not audit("S3", mode, **how).violation


WORD = "government"  # its neighbours in the trained space are the words that are told apart


def trained_texts(strategy: str) -> tuple[Toy, float]:
    """A trained embedding with all its words, texts of one token each, and a budget of 2 nats for the nearest two.

    The companion is punctuation, which is kept, so that the outputs are as many as the words and not their squares.
    """
    segmentation = SEGMENTATION_OF[strategy]
    space, lexicon = load_embedding(segmentation), load_lexicon(segmentation)
    vocabulary = Vocabulary.of(space.tokens, space.vectors, SAMPLE)
    word = vocabulary.vectors[vocabulary.number[lexicon.rows[WORD]]].astype(np.float64)
    near, distances = ExactSearch(vocabulary.vectors).nearest_k(word[None], 6)
    heads = [space.tokens[vocabulary.rows[number]].replace("_", " ") for number in near[0].tolist()]
    if strategy != "S1":
        heads.append(next(token for token in space.tokens if "_" in token).replace("_", " "))
    texts = [*heads, "zorblax", "quuxly"]
    assert encode(texts, lexicon).n_words.shape == (len(texts),)  # one token each
    return Toy(lexicon, vocabulary, ".", texts), 2.0 / float(distances[0, 1])


@pytest.mark.parametrize(
    ("strategy", "mode", "make"),
    [
        ("S1", "release", Madlib),
        ("S3", "release", Tem),
        ("S4", "experiment", Mahalanobis),
    ],
)
def test_texts_in_a_trained_space(built: Path, strategy: str, mode: str, make: Callable[[Any], Any]) -> None:
    """Some 2,000 words in 16 dimensions, trained on the embedded corpus, their collocations, their real neighbours."""
    toy, budget = trained_texts(strategy)
    assert len(toy.vocabulary.rows) > 1000
    result = audit(strategy, mode, make=make, promised=make, toy=toy, budget=budget, samples=TRAINED)
    assert not result.violation
    assert result.comparisons > 20


@pytest.mark.parametrize(
    "make",
    [
        WrongShape,
        lambda vectors: Tem(4 * np.asarray(vectors)),
    ],
    ids=["radius of one dimension", "a quarter of the noise of tem"],
)
def test_broken_mechanisms_show_in_a_trained_space(built: Path, make: Callable[[Any], Any]) -> None:
    toy, budget = trained_texts("S3")
    assert audit("S3", "release", make=make, toy=toy, budget=budget, samples=TRAINED).violation


def test_unknown_words_in_clear_show_in_a_trained_space(built: Path) -> None:
    toy, budget = trained_texts("S3")
    kept = Policy("perturb", "keep", "keep")
    assert audit("S3", "release", done=kept, toy=toy, budget=budget, samples=TRAINED).audited == np.inf


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_unknown_words_passed_through_under_a_claim_are_caught(strategy: str) -> None:
    """The record says that unknown words are replaced by uniform draws; the texts say otherwise."""
    result = audit(strategy, done=Policy("perturb", "keep", "keep"))
    assert result.violation
    assert result.audited == np.inf  # nothing was allowed
    assert result.worst is not None and result.worst.allowed == 0


@pytest.mark.parametrize("strategy", ["S1", "S3"])
def test_unknown_words_in_clear_without_a_claim_are_none(strategy: str) -> None:
    """A policy that keeps them says so: nothing is claimed of texts that differ there."""
    keep = Policy("perturb", "keep", "keep")
    assert "leaves in clear" in " ".join(guarantee(Claim(mechanism="madlib", strategy=strategy, policy=keep)).because)
    assert not audit(strategy, claimed=keep, done=keep).violation


@pytest.mark.parametrize("strategy", ["S1", "S2"])
def test_words_passed_through_under_a_claim_are_caught(strategy: str) -> None:
    class PassesThrough(Madlib):
        def replace(self, ids, epsilon, noise):
            return ids

    assert audit(strategy, make=PassesThrough).violation


@pytest.mark.parametrize("strategy", ["S2", "S4"])
def test_one_seed_for_all_releases_is_caught(strategy: str) -> None:
    assert audit(strategy, generators=lambda stage, number: lambda row: stream(7)).violation


@pytest.mark.parametrize("strategy", ["S1", "S4"])
def test_one_stream_for_all_texts_of_a_release_is_caught(strategy: str) -> None:
    """A fresh seed for each release, and each text starts it anew: who knows one text can subtract its noise."""

    def restarted(stage: str, number: int) -> Callable[[int], np.random.Generator]:
        return lambda row: stream(7, stage, str(number), str(row // 2))

    toy = toy_texts(strategy, EPSILON, SAMPLE)
    assert audit(strategy, generators=restarted, companion=toy.texts[1]).violation
    assert not audit(strategy, companion=toy.texts[1]).violation


def test_one_noise_for_all_tokens_of_a_text_is_caught() -> None:
    assert audit("S1", make=SameNoiseForEveryToken).violation


@pytest.mark.parametrize("strategy", ["S1", "S3"])
@pytest.mark.parametrize("make", [WrongScale, lambda vectors: Vickrey(vectors, exclude_input=True)])
def test_broken_mechanisms_show_in_texts_too(strategy: str, make: Callable[[Any], Any]) -> None:
    assert audit(strategy, make=make).violation


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_overspent_budget_shows(strategy: str) -> None:
    """Every token gets the whole budget of its text."""
    toy = toy_texts(strategy, EPSILON, SAMPLE)
    planned = text_budgets(toy.texts, toy.lexicon, toy.vocabulary, SAMPLE, strategy, BUDGET)
    mechanism = Madlib(toy.vocabulary.vectors)
    for factor, over in ((1.0, False), (1.001, True), (3.0, True)):
        components = Components(toy.lexicon, toy.vocabulary, mechanism, SAMPLE)
        made = rewrite(toy.texts, factor * planned, components, lambda row: stream(1, str(row)))
        # S2 spends less than the budget where there are collocations; a thousandth more is within it.
        assert (spent_too_much(made, BUDGET) > 0) == (over and (strategy != "S2" or factor > 2))
    assert audit(strategy, overspend=3.0).violation


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_claimed_of_two_texts(strategy: str) -> None:
    """Σ ε_i·d over perturbed tokens; nothing where classes differ; zero between sampled tokens."""
    toy = toy_texts(strategy, EPSILON, SAMPLE)
    planned = text_budgets(toy.texts, toy.lexicon, toy.vocabulary, SAMPLE, strategy, BUDGET)
    distances = distances_of(Madlib(toy.vocabulary.vectors))
    allowed = claimed_losses(toy.texts, planned, toy.lexicon, toy.vocabulary, SAMPLE, distances)
    share = {"S1": 3, "S2": 3, "S3": 2, "S4": 2}[strategy]
    step = float(distances(np.array([0]), np.array([1]))[0, 0])
    assert allowed[0, 1] == pytest.approx(BUDGET / share * step, rel=1e-12)
    assert allowed[-1, -2] == 0.0  # two unknown words
    assert np.isinf(allowed[0, -1])  # known against unknown: which it is, is not hidden
    if strategy != "S1":
        # "harbor storm signal" in the place of one word: in S2 it takes a larger part of the budget.
        assert np.isinf(allowed[0, 4]) == (strategy == "S2")
    assert (allowed == allowed.T).all() and (np.diag(allowed) == 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_no_noise_is_used_twice(mode: str) -> None:
    toy, runs = toy_texts("S1", EPSILON, SAMPLE), 2 if mode == "release" else 1
    mechanism = Madlib(toy.vocabulary.vectors)

    def reused(generators: Generators, of: Toy = toy) -> bool:
        noises = drawn_noises(mechanism, of, SAMPLE, EPSILON, generators, runs)
        assert len(noises) == 2 * runs
        return noise_reused(noises)

    assert not reused(generators_of(mode, 5, "suite"))
    assert reused(lambda stage, number: lambda row: stream(7))  # one seed for everything
    if mode == "release":  # the seed of an experiment in the place of the system's entropy
        assert reused(lambda stage, number: lambda row: stream(7, str(row)))
