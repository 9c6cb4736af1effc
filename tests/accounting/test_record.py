"""A record states what the measurement that ran states, and a person reads it."""

import pytest

from lexveil.accounting.record import Counts, PrivacyRecord
from lexveil.accounting.statement import statement
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.engine.engine import guarantee_of
from tests.accounting.toy_measurements import measured, settings_of, toy


def recorded(mechanism: str, n_kept: int = 3) -> PrivacyRecord:
    settings, kernel = settings_of(mechanism), toy(mechanism)
    return PrivacyRecord.of(
        **settings.described(),
        guarantee=guarantee_of(measured(mechanism), settings, kernel, None),
        document_budget={"input": 12.0},
        counts=Counts(n_texts=2, n_tokens=10, n_perturbed=6, n_sampled=1, n_dropped=0, n_kept=n_kept),
        lexveil="1",
        no_proof=kernel.no_guarantee,
        parameters={"beta": 0.1},
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_record_names_metric_and_parameters(mechanism: str) -> None:
    made = recorded(mechanism)
    assert made.metric == MECHANISMS[mechanism].metric and made.parameters == {"beta": 0.1}
    if made.no_proof is None:
        assert made.metric in made.guarantee.statement and "exp(" in made.guarantee.formula
    else:
        assert made.guarantee.formula == "none" and made.no_proof in made.guarantee.statement


def test_a_statement_warns_of_what_a_guarantee_hides() -> None:
    few, many = (
        [line for line in statement(recorded("madlib", n_kept)) if line.startswith("CAUTION")] for n_kept in (3, 4)
    )
    assert few == [] and len(many) == 1 and "40% of all tokens are unprotected" in many[0]
