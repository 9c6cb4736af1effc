"""The suite of a bank's sentences through its SQL: one defect at a time."""

import pyarrow as pa
import pytest

from lexveil.io.config import SentenceParams
from lexveil.io.execution import duckdb_session
from lexveil.lab.checks.sentence_suite import sentence_suite
from lexveil.lab.data.sentence_choice import choice_of
from tests.checks.conftest import SECRET, first_fault

GOOD = [("It was good.", 3, 3), (f"{SECRET} was far away from here.", 20, 19)]


def frame_of(rows):
    names = ("text", "n_words", "n_known")
    columns = zip(*rows, strict=True) if rows else [[], [], []]
    schema = pa.schema(zip(names, (pa.string(), pa.int32(), pa.int32()), strict=True))
    with duckdb_session.session() as con:
        table = pa.table([list(column) for column in columns], schema=schema)
        con.register("sentences", table)
        return duckdb_session.run(con, "checks/bank_sentences").df()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (GOOD, None),
        ([], None),
        ([*GOOD, ("it was GOOD.", 3, 3)], ("sentence", 2, 2)),
        ([*GOOD, (" ", 3, 3)], ("is_blank", 1, 1)),
        ([*GOOD, ("Too short.", 2, 2)], ("n_words", 1, 2)),
        ([*GOOD, ("One more than there may be.", 31, 31)], ("n_words", 1, 31)),
        ([*GOOD, ("Of these a word is not known.", 10, 9)], ("coverage", 1, 0.9)),
        ([*GOOD, ("One too many.", 3, 3), ("And one more.", 3, 3)], ("rows", 1, 4)),
    ],
)
def test_what_stops_and_what_does_not(rows, fault):
    limits = choice_of(SentenceParams(), 1).limits()
    frame = frame_of(rows)
    assert first_fault(sentence_suite(3, **limits), frame) == fault
    assert SECRET not in frame.to_csv()
