"""The rule of withholding against a plain model, whatever the documents, chunks and amounts."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexveil.ledger import spool
from lexveil.ledger.amounts import MOST, cap_nano, costs, distinct, withhold
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.verification import verify

NAMES = ["ana", "ben", "zoe", "x" * 200]
AMOUNTS = st.one_of(st.integers(0, 10), st.integers(0, MOST))


def plain(
    documents: list[tuple[int, int]], room: list[int], asked: list[int]
) -> tuple[list[bool], list[int], list[int]]:
    """One document at a time, numbers of any size: taken as long as all so far, withheld ones too, fit."""
    so_far, paid, withheld = list(asked), [0] * len(room), []
    for subject, cost in documents:
        so_far[subject] += cost
        withheld.append(so_far[subject] > room[subject])
        paid[subject] += 0 if withheld[-1] else cost
    return withheld, paid, [min(amount, MOST) for amount in so_far]


@given(
    documents=st.lists(st.tuples(st.integers(0, 3), AMOUNTS), max_size=40),
    room=st.lists(st.integers(-MOST, MOST), min_size=4, max_size=4),
    asked=st.lists(AMOUNTS, min_size=4, max_size=4),
)
@example(documents=[(0, MOST)] * 40, room=[MOST] * 4, asked=[MOST] * 4)
@example(documents=[(0, 1), (1, 1), (0, 1)], room=[1, 1, 0, 0], asked=[0, 0, 0, 0])
def test_one_chunk(documents: list[tuple[int, int]], room: list[int], asked: list[int]) -> None:
    subject, cost = (np.array([one[place] for one in documents], dtype=np.int64) for place in (0, 1))
    found = withhold(subject, cost, np.array(asked), np.array(room))
    assert tuple(one.tolist() for one in found) == plain(documents, room, asked)


@settings(max_examples=25)
@given(
    releases=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([0.0, 0.25, 1.0, 1.5])), max_size=25),
            st.sampled_from([None, 0.5, 3.0, 7.0]),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    chunk=st.integers(1, 12),
)
def test_releases_one_after_another(
    releases: list[tuple[list[tuple[str, float]], float | None, bool]], chunk: int
) -> None:
    """Whole releases, spilled in chunks of any size, some aborted; caps come and go."""
    spent = dict.fromkeys(NAMES, Fraction(0))
    kept, spool.CHUNK = spool.CHUNK, chunk
    try:
        with TemporaryDirectory() as made, Ledger.open(Path(made) / "ledger") as ledger:
            for documents, cap, commits in releases:
                so_far, expected = dict(spent), []
                for name, share in documents:
                    so_far[name] += Fraction(share)
                    expected.append(cap is not None and so_far[name] > cap)
                with ledger.begin({}) as release:
                    for name, share in documents:
                        release.request([name], np.array([share]))
                    assert release.reserve(1.5, cap).withheld(0, len(documents)).tolist() == expected
                    if commits:
                        release.spend()
                        release.commit()
                        for (name, share), withheld in zip(documents, expected, strict=True):
                            spent[name] += 0 if withheld else Fraction(share)
                for name in NAMES:
                    rows = ledger.database.rows(
                        "select nano from balances where subject = ?", (ledger.hasher.one(name),)
                    )
                    assert (rows[0][0] if rows else 0) == spent[name] * 10**9
            assert verify(Path(made) / "ledger").problems == []
    finally:
        spool.CHUNK = kept


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(1e-9, 1e8))
@example([1.0, 0.1, 1 / 3], 0.1)
def test_no_amount_is_less_than_what_is_spent(shares: list[float], budget: float) -> None:
    """Exactly the next whole number, and never more than the budget's."""
    epsilon = np.minimum(np.array(shares, dtype=np.float64) * budget, budget)
    most = math.ceil(Fraction(repr(budget)) * 10**9)
    for spent, nano in zip(epsilon.tolist(), costs(epsilon, budget).tolist(), strict=True):
        assert nano == min(math.ceil(Fraction(spent) * 10**9), most)


@given(st.integers(1, 10**15))
def test_a_cap_is_what_its_decimal_says(nano: int) -> None:
    assert cap_nano(float(f"{nano // 10**9}.{nano % 10**9:09d}")) in (nano, nano - 1)
    assert cap_nano(0.29) == 290_000_000 and cap_nano(1e-9) == 1
    assert cap_nano(math.nextafter(0.29, 0)) == 289_999_999


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_distinct_keys_whose_first_halves_are_the_same(rows: list[tuple[int, int]]) -> None:
    keys = np.array(rows, dtype=np.uint64).reshape(-1, 2)
    found, index = distinct(keys)
    assert [tuple(row) for row in found.tolist()] == sorted(set(rows))
    assert found[index].tolist() == keys.tolist()
