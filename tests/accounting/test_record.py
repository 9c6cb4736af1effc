"""A record states what the measurement that ran states, and a person reads it."""

import pytest

from lexveil.accounting.budgets import Policy
from lexveil.accounting.record import Configuration, Counts, PrivacyRecord, RunFacts, record
from lexveil.accounting.statement import statement
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.engine.engine import guarantee_of
from tests.accounting.toy_measurements import POLICY, measured, settings_of, toy

COUNTS = dict(n_texts=2, n_tokens=10, n_perturbed=6, n_sampled=1, n_dropped=0, n_kept=3)


def recorded(mechanism: str, mode: str, counts: dict[str, float], parameters: dict[str, float]) -> PrivacyRecord:
    settings, kernel = settings_of(mechanism, seed=None if mode == "release" else 1), toy(mechanism)
    facts = RunFacts(
        configuration=Configuration(mechanism, "S3", POLICY, mode, no_proof=kernel.no_guarantee),
        guarantee=guarantee_of(measured(mechanism, seed=settings.seed), settings, kernel, None),
        base_epsilon=1.0,
        budgets={"input": 12.0},
        counts=Counts(**counts),
        made_with={},
        version="1",
        parameters=parameters,
    )
    return record(facts)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_record_names_metric_and_parameters(mechanism: str) -> None:
    made = recorded(mechanism, "release", COUNTS, {"beta": 0.1})
    assert made.metric == MECHANISMS[mechanism].metric and made.parameters == {"beta": 0.1}
    if made.no_proof is None:
        assert made.metric in made.guarantee.statement and "exp(" in made.guarantee.formula
    else:
        assert made.guarantee.formula == "none" and made.no_proof in made.guarantee.statement


@pytest.mark.parametrize("mode", ["release", "experiment"])
def test_the_statement_says_what_matters(mode: str) -> None:
    made = recorded("madlib", mode, COUNTS, {})
    text = "\n".join(statement(made))
    assert "6 perturbed" in text and "3 unprotected" in text and "unchanged" not in text
    assert ("guarantee: none" in text) is (mode == "experiment")
    assert "seed" not in made.to_dict()
    assert ("Not covered: the text itself decides" in text) is (mode == "release")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"n_kept": 4}, "40% of all tokens are unprotected"),
    ],
)
def test_a_statement_warns_of_what_a_guarantee_hides(changed: dict[str, float], said: str | None) -> None:
    made = recorded("madlib", "release", COUNTS | changed, {})
    cautions = [line for line in statement(made) if line.startswith("CAUTION")]
    assert len(cautions) == (said is not None)
    assert said is None or said in cautions[0]


def test_policy_is_recorded_as_it_was_resolved() -> None:
    made = recorded("madlib", "release", COUNTS, {})
    assert made.policy.model_dump() == {"stopwords": "perturb", "punctuation": "keep", "oov": "sample"}
    assert Policy(**made.policy.model_dump()) == POLICY
