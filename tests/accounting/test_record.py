"""A guarantee is printed only where its proof holds for what was run."""

import pytest

from lexveil.accounting.budgets import Policy
from lexveil.accounting.guarantee import Claim, guarantee
from lexveil.accounting.record import Counts, PrivacyRecord, RunFacts, record
from lexveil.accounting.statement import statement
from lexveil.mechanisms.registry import MECHANISMS

SAFE = Policy("perturb", "keep", "sample")
COUNTS = dict(n_texts=2, n_tokens_in=10, n_perturbed=6, n_sampled=1, n_dropped=0, n_kept=3, share_unchanged=0.5)


def recorded(mechanism: str, mode: str, counts: dict[str, float], parameters: dict[str, float]) -> PrivacyRecord:
    facts = RunFacts(
        claim=Claim(mechanism=mechanism, strategy="S3", policy=SAFE, mode=mode),
        base_epsilon=1.0,
        budgets={"input": 12.0},
        counts=Counts(**counts),
        made_with={},
        version="1",
        parameters=parameters,
    )
    return record(facts)


@pytest.mark.parametrize(
    ("mechanism", "mode", "claimed"),
    [
        ("madlib", "release", True),
        ("madlib", "experiment", False),
        ("madlib", "anything", False),
        ("none", "release", False),
    ],
)
def test_only_a_release_claims(mechanism: str, mode: str, claimed: bool) -> None:
    formula = guarantee(Claim(mechanism=mechanism, strategy="S3", policy=SAFE, mode=mode)).formula
    assert (formula != "none") is claimed


@pytest.mark.parametrize("mode", ["release", "experiment"])
def test_a_mechanism_without_a_proof_claims_nothing(mode: str) -> None:
    made = guarantee(
        Claim(mechanism="vickrey", strategy="S3", policy=SAFE, mode=mode, no_proof="the input is left out")
    )
    assert made.formula == "none" and made.because[0] == "the input is left out"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_record_names_metric_and_parameters(mechanism: str) -> None:
    made = recorded(mechanism, "release", COUNTS, {"beta": 0.1})
    assert made.metric == MECHANISMS[mechanism].metric and made.metric in made.guarantee.statement
    assert made.parameters == {"beta": 0.1} and "exp(" in made.guarantee.formula


@pytest.mark.parametrize(
    ("strategy", "policy", "keep_layout", "said"),
    [
        ("S3", Policy("keep", "keep", "sample"), False, "what is kept (stop words, punctuation) leaves in clear"),
        ("S3", Policy("perturb", "perturb", "keep"), False, "what is kept (unknown words) leaves in clear"),
        ("S3", SAFE, True, "layout is unprotected"),
        ("S2", SAFE, False, "same number of words in their perturbed tokens"),
    ],
)
def test_conditions_name_what_is_not_protected(strategy: str, policy: Policy, keep_layout: bool, said: str) -> None:
    because = guarantee(Claim(mechanism="madlib", strategy=strategy, policy=policy, keep_layout=keep_layout)).because
    assert any(said in line for line in because)
    plain = guarantee(Claim(mechanism="madlib", strategy="S3", policy=Policy("perturb", "perturb", "sample"))).because
    assert not any(said in line for line in plain)


@pytest.mark.parametrize("mode", ["release", "experiment"])
def test_the_statement_says_what_matters(mode: str) -> None:
    made = recorded("madlib", mode, COUNTS, {})
    text = "\n".join(statement(made))
    assert "6 perturbed (50.0% came out unchanged)" in text and "3 unprotected" in text
    assert ("guarantee: none" in text) is (mode == "experiment")
    assert "seed" not in made.to_dict()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"n_kept": 4}, "40% of all tokens are unprotected"),
        ({"share_unchanged": 0.9}, "90% of the perturbed tokens"),
    ],
)
def test_a_statement_warns_of_what_a_guarantee_hides(changed: dict[str, float], said: str | None) -> None:
    made = recorded("madlib", "release", COUNTS | changed, {})
    cautions = [line for line in statement(made) if line.startswith("CAUTION")]
    assert len(cautions) == (said is not None)
    assert said is None or said in cautions[0]


@pytest.mark.parametrize(("given", "said"), [(True, "tells nothing"), (False, "average length")])
def test_a_given_budget_tells_nothing(given: bool, said: str) -> None:
    because = guarantee(Claim(mechanism="tem", strategy="S3", policy=SAFE, given_budget=given)).because
    assert any(said in line for line in because)
