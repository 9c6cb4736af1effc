"""The rule of withholding against a plain model, whatever the documents and amounts."""

import math
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexveil.release.ledger.amounts import cap_nano, costs
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify

NAMES = ["ana", "ben", "zoe", "x" * 200]
# documents and their shares, cap, whether it commits
SHARES = st.one_of(st.sampled_from([0.0, 0.25, 1.0, 1.5]), st.floats(0, 1.5))


@settings(max_examples=25)
@given(
    releases=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(NAMES), SHARES), max_size=25),
            st.sampled_from([None, 0.5, 3.0, 7.0]),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    batch=st.integers(1, 12),
)
def test_releases_one_after_another(releases, batch):
    """Whole releases, requested in batches of any size, some aborted; caps come and go.

    One document at a time, numbers of any size: taken as long as all so far, withheld ones too,
    fit.
    """
    spent = dict.fromkeys(NAMES, 0)
    with TemporaryDirectory() as made, Ledger.open(Path(made) / "ledger") as ledger:
        for documents, cap, commits in releases:
            so_far = dict(spent)
            paid = dict(spent)
            expected = []
            for name, share in documents:
                nano = math.ceil(Fraction(share) * 10**9)
                so_far[name] += nano
                expected.append(cap is not None and so_far[name] > cap * 10**9)
                paid[name] += 0 if expected[-1] else nano
            with ledger.begin({}) as release:
                for start in range(0, len(documents), batch):
                    some = documents[start : start + batch]
                    release.request(
                        [name for name, _ in some], np.array([share for _, share in some])
                    )
                reserved = release.reserve(1.5, cap)
                assert reserved.withheld(0, len(documents)).tolist() == expected
                assert (reserved.n_documents, reserved.n_withheld) == (len(expected), sum(expected))
                assert reserved.n_subjects == len({name for name, _ in documents})
                assert reserved.total == sum(paid.values()) - sum(spent.values())
                if commits:
                    release.spend()
                    release.commit()
                    spent = paid
            rows = dict(ledger.database.rows("select subject, nano from balances"))
            assert rows == {ledger.hasher.one(name): nano for name, nano in spent.items() if nano}
        assert verify(Path(made) / "ledger").problems == []


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(1e-9, 1e8))
@example([1.0, 0.1, 1 / 3], 0.1)
def test_no_amount_is_less_than_what_is_spent(shares, budget):
    """Exactly the next whole number, and never more than the budget's."""
    epsilon = np.minimum(np.array(shares, dtype=np.float64) * budget, budget)
    most = math.ceil(Fraction(repr(budget)) * 10**9)
    for spent, nano in zip(epsilon.tolist(), costs(epsilon, budget).tolist(), strict=True):
        assert nano == min(math.ceil(Fraction(spent) * 10**9), most)


def test_a_cap_is_what_its_decimal_says():
    assert cap_nano(0.29) == 290_000_000 and cap_nano(1e-9) == 1
    assert cap_nano(math.nextafter(0.29, 0)) == 289_999_999
