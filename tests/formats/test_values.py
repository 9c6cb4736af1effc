"""Values that name a subject: one name for one value, whatever library it comes from."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import pytest

from lexveil.io.formats.values import plain_value

NOW = datetime.datetime(2026, 3, 1, 12, 30)
ID = "12345678-1234-5678-1234-567812345678"
SAME = {
    "7": [7, 7.0, "7", decimal.Decimal(7), *(np.dtype(kind).type(7) for kind in "bBhHiIlLqQefd")],
    "0.1": [0.1, np.float64(0.1), np.float32(0.1), np.float16(0.1), decimal.Decimal("0.1")],
    "true": [True, np.True_],
    "ana": ["ana", np.str_("ana")],
    "2026-03-01T12:30:00": [NOW, pd.Timestamp(NOW), np.datetime64(NOW), np.datetime64(NOW, "ns")],
    "2026-03-01": [NOW.date(), np.datetime64("2026-03-01")],
    "2026-03-01T12:30:00.000000001": [np.datetime64("2026-03-01T12:30:00.000000001")],
    ID: [ID, uuid.UUID(ID)],
}


@pytest.mark.parametrize("name", SAME)
def test_a_value_has_one_name(name):
    assert {plain_value(value, "who", "here") for value in SAME[name]} == {name}


@pytest.mark.parametrize(
    "value", [None, "", float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NaT]
)
def test_nothing_names_nobody(value):
    assert plain_value(value, "who", "here") is None
