"""A measurement's bound holds of what the engine draws, is what a record states, and fails with a
precondition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.accounting.budgets import DocumentBudget, Policy
from lexveil.core.accounting.measurements import NoBoundError, check_spent, of_token
from lexveil.core.accounting.record import Counts, PrivacyRecord
from lexveil.core.accounting.statement import statement
from lexveil.core.detectors.detection import Detection
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.rank_remap import RankRemap
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.core.text.encode import encode
from lexveil.release.settings import document_budget
from tests.accounting.toy_measurements import (
    PLACES,
    WORDS,
    between,
    measured,
    settings_of,
    structures_of,
    toy,
    toy_engine,
)

STRATEGIES = ("S1", "S2", "S3", "S4")
CLOSED = [name for name in MECHANISMS if MECHANISMS[name].has_closed_form()]
TEXTS = st.lists(
    st.sampled_from([*WORDS, "zorblax", ",", "new south wales", "fire police"]),
    min_size=1,
    max_size=6,
)


def exact_loss(engine, texts, structures):
    """The largest |ln Pr[M(D)=y] - ln Pr[M(D')=y]|: tokens are drawn independently, so it is the
    sum over them."""
    mechanism = engine.prepared.mechanism
    losses = []
    for first, second, epsilon in zip(
        *(ids_of(engine, text) for text in texts), structures[0].epsilon, strict=True
    ):
        if epsilon > 0:
            laws = mechanism.log_pmf(np.array([first, second]), np.full(2, epsilon))
            losses.append(float(np.abs(laws[0] - laws[1]).max()))
    return sum(losses)


def ids_of(engine, text):
    return encode([text], engine.lexicon).rows.tolist()


def distances_of(engine, texts, structure):
    first, second = (np.array(ids_of(engine, text))[structure.action == 0] for text in texts)
    return engine.prepared.mechanism.distance(first, second)


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mechanism", CLOSED)
@given(words=TEXTS, others=st.lists(st.sampled_from(WORDS), min_size=6, max_size=6))
def test_the_map_bounds_the_exact_loss_of_neighbours(
    mechanism, strategy, consistent, words, others
):
    engine = toy_engine(mechanism, strategy, consistent=consistent)
    changed = [other if word in WORDS else word for word, other in zip(words, others, strict=False)]
    texts = (" ".join(words), " ".join(changed))
    budget = document_budget(engine.settings, engine.model)
    first, second = structures_of(engine, [[text] for text in texts], budget)
    measurement = engine.measurement(budget)
    if differences := first.differences(second):
        assert strategy != "S1" or consistent or "fate" in " ".join(differences)
        with pytest.raises(NoBoundError, match="not neighbours"):
            between(measurement, first, second, np.zeros(0))
        return
    distances = distances_of(engine, texts, first)
    bound = between(measurement, first, second, distances)
    assert exact_loss(engine, texts, (first, second)) <= bound.nats + 1e-9
    assert bound.delta == 0
    assert bound.nats <= measurement.bound(distances).nats + 1e-9  # what is known without the ε_i


OF_DATA = {"average_words": "data", "base_epsilon": 1.0, "budget": None}
VIOLATED = {
    "seed": ({"seed": 7}, "the seed of the noise is known"),
    "private average": (OF_DATA, "is computed from the private texts"),
}


@pytest.mark.parametrize("violated", VIOLATED)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("consistent", [False, True])
def test_a_violated_precondition_leaves_nothing(violated, strategy, mechanism, consistent):
    more, why = VIOLATED[violated]
    none = measured(mechanism, strategy, consistent=consistent, **more)
    guarantee = none.guarantee()
    assert guarantee.formula == "none" and not guarantee.holds and why in guarantee.statement
    with pytest.raises(NoBoundError, match=why):
        none.bound(np.ones(1), np.ones(1))
    whole = measured(mechanism, strategy, consistent=consistent)
    assert whole.guarantee().holds is (toy(mechanism).no_guarantee is None)


class Undeclared(Madlib):
    """Draws something else; what its parent declares says nothing of it."""

    name = "undeclared"


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (Vickrey(PLACES, exclude_input=True), "exclude_input"),
        (RankRemap(Vickrey(PLACES, exclude_input=True)), "exclude_input"),
        (TruncatedGumbel(PLACES), "published bound does not hold"),
        (Undeclared(PLACES), "no privacy map is declared"),
        (RankRemap(Undeclared(PLACES)), "no privacy map is declared"),
    ],
)
def test_a_mechanism_that_proves_nothing_claims_nothing(mechanism, why):
    with pytest.raises(NoBoundError, match=why):
        of_token(mechanism).bound(np.ones(1), np.ones(1))


@pytest.mark.parametrize(
    "mechanism", [name for name in MECHANISMS if MECHANISMS[name].no_guarantee is None]
)
def test_every_other_mechanism_declares_its_map(mechanism):
    token = of_token(toy(mechanism))
    assert token.bound(np.array([2.0]), np.array([0.5])).nats == pytest.approx(1.0, abs=1e-9)
    assert toy(mechanism).exactness in token.conditions


def test_post_processing_leaves_the_bound_and_is_said():
    plain = of_token(Madlib(PLACES))
    remapped = of_token(RankRemap(Madlib(PLACES)))
    distances = np.array([1.0, 3.0])
    epsilon = np.array([2.0, 2.0])
    assert remapped.bound(distances, epsilon) == plain.bound(distances, epsilon) == (8.0, 0.0)
    assert set(remapped.conditions) - set(plain.conditions)


def test_a_budget_bounds_what_is_known_without_the_epsilons():
    engine = toy_engine("madlib", "S3", budget=6.0, max_token_epsilon=2.0)
    measurement = engine.measurement(document_budget(engine.settings, engine.model))
    assert measurement.bound(np.array([1.0])).nats == 2.0  # the limit of a token
    # B is spent then
    assert measurement.bound(np.array([1.0, 5.0, 1.0, 1.0, 1.0])).nats == 2 * 5 + 2 + 2
    with pytest.raises(NoBoundError, match="add up to more"):
        measurement.bound(np.ones(4), np.full(4, 2.0))
    with pytest.raises(NoBoundError, match="one finite distance"):
        measurement.bound(np.ones(3), np.ones(2))


@pytest.mark.parametrize(
    ("strategy", "more", "said"),
    [
        (
            "S3",
            {"policy": Policy("keep", "keep", "sample")},
            "kept, unprotected: stop words, punctuation",
        ),
        (
            "S3",
            {"policy": Policy("perturb", "perturb", "keep")},
            "kept, unprotected: unknown words",
        ),
        ("S3", {"keep_layout": True}, "kept, unprotected: layout"),
        ("S3", {"consistent": True}, "not hidden: which tokens of a text are equal"),
        ("S3", {"n_columns": 2}, "2 text columns of a row"),
        ("S1", {}, "two texts that differ in one word"),
        ("S1", {"keep_layout": True}, "and has the same capitals"),
    ],
)
def test_conditions_name_what_is_not_protected(strategy, more, said):
    assert any(said in line for line in measured("madlib", strategy, **more).guarantee().because)
    plain = (
        measured("madlib", "S3", policy=Policy("perturb", "perturb", "sample")).guarantee().because
    )
    assert not any(said in line for line in plain)
    alike = measured("madlib", strategy, consistent=True).guarantee().because
    assert not any("differ in one word" in line for line in alike)
    found = (
        measured("tem_context", strategy, detection=Detection({"NAME": "sample"}))
        .guarantee()
        .because
    )
    assert any(
        "NAME: each replaced by a draw from the vocabulary by public counts" in line
        for line in found
    )


def test_an_experiment_says_what_a_release_would_state():
    how = OF_DATA | {"seed": 3, "max_token_epsilon": "none"}
    engine = toy_engine("madlib", "S3", **how)
    stated = engine.guarantee(engine.measurement())
    assert not stated.holds and stated.in_release is not None and stated.in_release.holds
    assert stated.in_release == measured("madlib", base_epsilon=1.0, budget=None).guarantee()


@pytest.mark.parametrize(
    ("spent", "per_token", "n_paid"),
    # above B; not equal; above the limit of a token
    [(7.0, 1.75, 4.0), (4.0, 2.0, 3.0), (5.0, 5.0, 1.0)],
)
def test_what_was_drawn_must_be_what_is_claimed(spent, per_token, n_paid):
    budget = DocumentBudget(6.0, 3.0)
    fine = np.array([6.0, 0.0]), np.array([2.0, 0.0]), np.array([2.0, 0.0]), np.array([3.0, 0.0])
    check_spent(*fine, budget)
    two_parts = (
        np.array([6.0, 0.0]),
        np.array([3.0, 0.0]),
        np.array([1.5, 0.0]),
        np.array([4.0, 0.0]),
    )
    check_spent(*two_parts, budget)
    with pytest.raises(NoBoundError, match="nothing was released"):
        check_spent(
            np.array([spent]),
            np.array([per_token]),
            np.array([per_token]),
            np.array([n_paid]),
            budget,
        )


def test_what_is_known_without_the_epsilons_is_no_less_in_the_last_digits():
    """Rounding adds to the loss of each token of TEM, also of those for which nothing of B is
    left."""
    engine = toy_engine("tem", "S3", budget=6.0, max_token_epsilon=2.0)
    measurement = engine.measurement(document_budget(engine.settings, engine.model))
    distances = np.zeros(6)
    known = measurement.bound(distances, np.ones(6)).nats
    assert 0 < known <= measurement.bound(distances).nats * (1 + 1e-12)
    assert known == pytest.approx(2 * measurement.bound(distances[:3]).nats)


def recorded(mechanism, n_kept=3):
    settings = settings_of(mechanism)
    kernel = toy(mechanism)
    return PrivacyRecord.of(
        **settings.described(),
        guarantee=measured(mechanism).guarantee(),
        document_budget={"input": 12.0},
        counts=Counts(
            n_texts=2, n_tokens=10, n_perturbed=6, n_sampled=1, n_dropped=0, n_kept=n_kept
        ),
        lexveil="1",
        no_proof=kernel.no_guarantee,
        parameters={"beta": 0.1},
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_record_names_metric_and_parameters(mechanism):
    made = recorded(mechanism)
    assert made.metric == MECHANISMS[mechanism].metric and made.parameters == {"beta": 0.1}
    if made.no_proof is None:
        assert made.metric in made.guarantee.statement and "exp(" in made.guarantee.formula
    else:
        assert made.guarantee.formula == "none" and made.no_proof in made.guarantee.statement


def test_a_statement_warns_of_what_a_guarantee_hides():
    few, many = (
        [line for line in statement(recorded("madlib", n_kept)) if line.startswith("CAUTION")]
        for n_kept in (3, 4)
    )
    assert few == [] and len(many) == 1 and "40% of all tokens are unprotected" in many[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_statement_says_that_a_part_of_a_budget_tells_the_number_of_words(strategy):
    told = "B is divided by the number of all words of a text, so that the ε_i reveal this number"
    because = measured("tem", strategy).guarantee().because
    assert (told in because) == (strategy in ("S1", "S2"))
