"""Who may import whom: the contracts in pyproject.toml hold, and no modules import each other in a circle."""

from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports


def test_import_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    failed = lint_imports(no_cache=True)
    assert not failed, capsys.readouterr().out


def test_there_are_no_circles() -> None:
    """Inside rooms neither, where no contract looks; imports inside functions and for types count too."""
    graph = grimp.build_graph("lexveil", "tasks", "flows", cache_dir=None)
    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()
