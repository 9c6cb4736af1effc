"""The benchmark of the search compares what it says it compares."""

import pytest

from benchmarks import search
from lexveil.embeddings import exact_search


def test_both_searches_are_timed_and_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(exact_search, "SCREEN_QUERIES", 0)
    monkeypatch.setattr(exact_search, "SCREEN_WORK", 0)
    monkeypatch.setattr(search, "BATCH", 64)
    search.main(["--sizes", "300", "--epsilons", "10", "--tokens", "128"])
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[:4] == ["made,", "300", "x", "300"]
    assert row[-2:] == ["128", "0"]
