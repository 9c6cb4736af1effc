"""Planted faults: each is caught, by the audit with few samples or by a named test; without any,
neither complains.

A fault that nothing catches is a hole in the tests.
"""

import json

import numpy as np
import pytest

from tests.mutations.catchers import audited, caught_by_audit, complaints, fails, why
from tests.mutations.faults import FAULTS, MADLIB, TEM
from tests.mutations.planting import wrap

pytestmark = pytest.mark.slow

# What the audit is asked for, once for each way of asking: without a fault it must find nothing.
WAYS = {
    json.dumps({**fault.audit, "samples": 0}, sort_keys=True): fault.audit
    for fault in FAULTS
    if fault.audit
}
# By day one way for each mechanism: for TEM that with shares, since the metric's test below audits
# it as it is.
BY_DAY = {
    how["mechanism"]: way
    for way, how in reversed(WAYS.items())
    if ("shares" in how) == (how["mechanism"] == "tem")
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[pytest.mark.nightly] * fault.nightly)
        for fault in FAULTS
    ],
)
def test_a_planted_fault_is_caught(fault, request, monkeypatch):
    # made without the fault
    fixtures = {name: request.getfixturevalue(name) for name in fault.fixtures()}
    # by the fixture that the named tests patch with, so that their patches are undone before it
    fault.plant(monkeypatch)
    assert any(fails(named, values, fixtures.__getitem__) for named, values in fault.tests) or (
        fault.audit is not None and caught_by_audit(fault.kind, **fault.audit)
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.audit], ids=lambda fault: fault.name
)
def test_the_audit_at_its_defaults_catches_a_planted_fault(fault):
    """The audit has the strategy, parameters and mode that the fault needs; some faults have a
    named test as well.
    """
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        found = complaints(
            **{**(fault.audit or {}), "samples": 20_000, "keys": 2**13, "words": 300, "workers": 2}
        )
    assert found or fault.tests


@pytest.mark.parametrize(
    ("how", "hidden"),
    [(TEM, 2), pytest.param(MADLIB, 0, marks=pytest.mark.nightly)],
    ids=["tem", "madlib"],
)
def test_what_depends_on_the_word_is_sound_in_the_metric(how, hidden):
    """Rare words closer together, the last ``hidden`` of them in one point, and every word's ε the
    same: no finding.

    The same wish as that of the faults of kind "ε of the word", which are caught.
    """

    def scaled(original, shape):
        places = original(shape)
        factors = np.arange(len(places), 0, -1) / len(places)
        factors[len(places) - hidden :] = 0
        return places * factors[:, None]

    with pytest.MonkeyPatch.context() as patch:
        wrap("lexveil.auditing.toy_spaces:places_of", scaled)(patch)
        assert not complaints(**how)


@pytest.mark.parametrize(
    "way",
    [
        way if way in BY_DAY.values() else pytest.param(way, marks=pytest.mark.nightly)
        for way in WAYS
    ],
)
def test_without_a_fault_the_audit_finds_nothing(way):
    how = WAYS[way]
    # exclude_input, of which the audit shows what it costs
    if not how.get("own", {}).get("vickrey"):
        assert not why(audited(**{**how, "samples": 400}))
