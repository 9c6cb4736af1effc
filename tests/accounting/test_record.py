"""A record states what the measurement that ran states, and a person reads it."""

import pytest

from lexveil.accounting.record import Counts, PrivacyRecord
from lexveil.accounting.statement import statement
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.engine.engine import guarantee_of
from tests.accounting.toy_measurements import measured, settings_of, toy

COUNTS = dict(n_texts=2, n_tokens=10, n_perturbed=6, n_sampled=1, n_dropped=0, n_kept=3)


def recorded(mechanism: str, mode: str, counts: dict[str, float], parameters: dict[str, float]) -> PrivacyRecord:
    settings, kernel = settings_of(mechanism, seed=None if mode == "release" else 1), toy(mechanism)
    return PrivacyRecord.of(
        **settings.described(),
        guarantee=guarantee_of(measured(mechanism, seed=settings.seed), settings, kernel, None),
        document_budget={"input": 12.0},
        counts=Counts(**counts),
        lexveil="1",
        no_proof=kernel.no_guarantee,
        parameters=parameters,
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_record_names_metric_and_parameters(mechanism: str) -> None:
    made = recorded(mechanism, "release", COUNTS, {"beta": 0.1})
    assert made.metric == MECHANISMS[mechanism].metric and made.parameters == {"beta": 0.1}
    if made.no_proof is None:
        assert made.metric in made.guarantee.statement and "exp(" in made.guarantee.formula
    else:
        assert made.guarantee.formula == "none" and made.no_proof in made.guarantee.statement


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
