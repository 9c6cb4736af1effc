"""The suite of outputs of sentences through its SQL: one defect at a time."""

import pandas as pd
import pytest

from lexveil.io.execution import duckdb_session
from lexveil.lab.checks.sentence_output_suite import sentence_output_suite
from tests.checks.conftest import first_fault

EPSILON = 12.34
INPUTS = [
    ("news", "a", "all", "one", None, "x", None, None),
    ("news", "b", "all", "", "two", *"xyz"),
]
NAMES = ["dataset", "doc_id", "split", "text", "text_b", "label", "attribute", "context"]
SUMS = ["n_tokens_in", "n_tokens_out", "n_words_out", "epsilon_spent", "n_unprotected"]
LOG = ["dataset", "doc_id", "field", "position", "class", "epsilon", "action", "n_words", "word_id"]


def sums_of(n_sentences):
    return [n_sentences, n_sentences, 5 * n_sentences, EPSILON * n_sentences, 0]


def tables():
    """Two sentences of five words for each of three texts, from a bank of ten."""
    documents = [[*row, *sums_of(n)] for row, n in zip(INPUTS, (2, 4), strict=True)]
    texts = [("a", "text"), ("b", "text"), ("b", "text_b")]
    # as a budget that was divided
    spent = EPSILON * 3 / 3 * (1 + 2**-52)
    log = [
        ["news", doc_id, field, place, "sentence", spent, "perturbed", 5, 3 * place]
        for doc_id, field in texts
        for place in range(2)
    ]
    return {
        "inputs": pd.DataFrame(INPUTS, columns=NAMES, dtype=object),
        "documents": pd.DataFrame(documents, columns=[*NAMES, *SUMS]),
        "ledger": pd.DataFrame(log, columns=LOG),
    }


def test_a_sound_output_passes():
    assert first_fault(sentence_output_suite("privatize_sentences@r0.2"), judged(tables())) is None


def judged(of):
    with duckdb_session.session() as con:
        for name, frame in of.items():
            con.register(name, frame)
        wanted = {"n_bank": 10, "per_text": 2, "epsilon": EPSILON}
        return duckdb_session.run(con, "checks/sentence_outputs", **wanted).df()


@pytest.mark.parametrize(
    ("table", "column", "value", "fault"),
    [
        ("ledger", "word_id", 10, "n_foreign"),
        ("ledger", "word_id", -1, "n_foreign"),
        ("ledger", "position", 2, "n_misplaced"),
        ("ledger", "class", "word", "n_unclear"),
        ("ledger", "action", "kept", "n_unclear"),
        ("ledger", "epsilon", EPSILON * 1.001, "n_mispriced"),
        ("ledger", "n_words", 6, "words_out_gap"),
        ("ledger", "doc_id", "b", "sentences_gap"),
        ("documents", "label", "z", "n_miscarried"),
        ("documents", "n_tokens_out", 3, "sentences_out_gap"),
        ("documents", "n_unprotected", 1, "n_unprotected"),
        ("documents", "epsilon_spent", 1.0, "epsilon_difference"),
        ("documents", "doc_id", "c", "is_lost"),
    ],
)
def test_what_stops(table, column, value, fault):
    of = tables()
    of[table].loc[0, column] = value
    found = first_fault(sentence_output_suite("privatize_sentences@r0.2"), judged(of))
    assert found is not None and found[0] == fault
