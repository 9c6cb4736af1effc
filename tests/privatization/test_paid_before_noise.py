"""Noise drawn is epsilon spent: no generator of noise is made before the ledger has spent it, and
no byte leaves."""

import json
import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from asking import privatize_file

from lexveil import LexveilError, privatize
from lexveil.core.mechanisms.noise.streams import release_generator
from lexveil.release.adapters.files import ReleaseHooks
from lexveil.release.ledger.verification import verify
from lexveil.release.outputs import writing
from lexveil.release.run import Run

RELEASE = {"mechanism": "madlib", "strategy": "S1", "document_budget": 5.0}
SENTENCE = "the government said fire services in new south wales were there"


def releases():
    """State and nano-epsilon of each release after the fixture's, as another process finds them."""
    with closing(sqlite3.connect("file:.lexveil/ledger/ledger.sqlite?mode=ro", uri=True)) as con:
        return con.execute(
            "select state, (select coalesce(sum(nano), 0) from spends where release = "
            "number) from releases "
            "where number > 1 order by number"
        ).fetchall()


@pytest.fixture
def source(ready):
    (ready / "in.jsonl").write_text(
        "".join(json.dumps({"text": f"{SENTENCE} {n}"}) + "\n" for n in range(3))
    )
    return ready / "in.jsonl"


@pytest.mark.parametrize("how", ["file", "standard output", "memory"])
def test_no_entropy_is_asked_for_before_it_is_spent(source, monkeypatch, capfdbinary, how):
    found = []
    randbits = secrets.randbits

    def spy(n_bits):
        found.append(releases())
        return randbits(n_bits)

    monkeypatch.setattr(secrets, "randbits", spy)
    if how == "memory":
        privatize([SENTENCE] * 3, **RELEASE)
    else:
        privatize_file(source, "-" if how == "standard output" else "out.jsonl", **RELEASE)
    assert found
    assert [state for ((state, paid),) in found if paid > 0] == ["spent"] * len(found)
    assert [state for state, _ in releases()] == ["committed"]


@pytest.mark.parametrize(
    ("before", "after"), [("!", SENTENCE), ("fire\2new", "fire"), ("fire", "fire south")]
)
def test_nothing_is_drawn_for_what_the_first_pass_has_not_seen(
    source, monkeypatch, capfdbinary, before, after
):
    """Somebody who changes a file between the passes would otherwise get rewritten texts on
    standard output that nobody has paid for."""

    def write(*texts):
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

    def counted_then_changed(self, *arguments):
        count(self, *arguments)
        write(SENTENCE, after, after)

    def generator():
        n_drawn.append(1)
        return release_generator()

    count = Run.count
    n_drawn = list[int]()
    monkeypatch.setattr(Run, "count", counted_then_changed)
    monkeypatch.setattr("lexveil.io.formats.chunks.ROWS_OF_A_CHUNK", 1)
    monkeypatch.setattr("lexveil.release.engine.worker.release_generator", generator)
    write(SENTENCE, before, after)
    with pytest.raises(LexveilError, match="nothing after the change"):
        privatize_file(source, "-", workers=1, **RELEASE)
    assert len(capfdbinary.readouterr().out.splitlines()) <= 1 and len(n_drawn) <= 1


def test_a_gate_that_refuses_after_the_noise_gives_nothing_back(source):
    class Refuses(ReleaseHooks):
        def written(self, *_):
            raise LexveilError("refused")

    for number in (1, 2):
        with pytest.raises(
            LexveilError, match=r"refused; noise had been drawn, so the epsilon stays spent"
        ):
            privatize_file(source, "out.jsonl", hooks=Refuses(), **RELEASE)
        assert [state for state, paid in releases() if paid > 0] == ["failed"] * number
    assert not list(source.parent.glob("*out.jsonl*"))
    assert verify(".lexveil/ledger").holds


def _linked(outputs, hidden):
    os.link(hidden, "kept")


def _moved(outputs, hidden):
    hidden.rename("kept")
    hidden.symlink_to("kept")


def _written_by_another_run(outputs, hidden):
    """An experiment keeps no ledger that would refuse it, and its seed is known."""
    with writing(Path("out.jsonl")) as others:
        others.begin(Path("out.jsonl").absolute()).write_text('{"text": "of another run"}\n')
        others.forget()


@pytest.mark.parametrize("tamper", [_linked, _moved, _written_by_another_run])
def test_what_has_another_name_is_not_published(source, tamper):
    """A user who may write into the folder could keep refused output, or change published
    output.
    """

    class Tampers(ReleaseHooks):
        def written(self, outputs, record, operator):
            (hidden,) = (
                hidden for final, hidden in outputs.begun.items() if final.name == "out.jsonl"
            )
            tamper(outputs, hidden)
            return record, operator

    with pytest.raises(LexveilError, match="somebody linked or replaced the hidden file"):
        privatize_file(source, source.with_name("out.jsonl"), hooks=Tampers(), **RELEASE)
    assert not list(source.parent.glob("*out.jsonl*")) and not list(source.parent.glob(".partial*"))
    if tamper is _linked:
        assert source.with_name("kept").read_bytes() == b""


def test_what_fails_before_the_noise_costs_nothing(source, monkeypatch):
    monkeypatch.setattr("lexveil.release.ledger.transaction.Transaction.spend", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        privatize_file(source, "out.jsonl", **RELEASE)
    assert releases() == [("aborted", 0)]
