"""Who may import whom: the contracts in pyproject.toml hold."""

from pathlib import Path

import pytest
from importlinter.cli import lint_imports


def test_import_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    failed = lint_imports(no_cache=True)
    assert not failed, capsys.readouterr().out
