"""The examples run on a small project, print what they promise and leave the project alone."""

import json
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    try:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    except SystemExit as end:
        assert not end.code


@pytest.fixture
def folder(built, tmp_path, monkeypatch):
    """The project, which is not the current folder."""
    monkeypatch.chdir(tmp_path)
    return str(built)


def test_privatize_dataframe(folder, monkeypatch, capsys):
    run("privatize_dataframe.py", monkeypatch, "--project", folder, "--seed", "7")
    out = capsys.readouterr().out
    assert out.count("  -> ") == 5 and "mode experiment" in out and "perturbed" in out


def test_compare_mechanisms(folder, monkeypatch, capsys):
    options = "--mechanisms madlib tem --epsilons 1 50".split()
    run("compare_mechanisms.py", monkeypatch, "--project", folder, *options)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    shares = {
        row[0]: [int(cell[:-1]) for cell in row[-2:]]
        for row in rows
        if row and row[0] in ("madlib", "tem")
    }
    # a larger epsilon keeps more
    assert len(shares) == 2 and all(low < high for low, high in shares.values())


def test_audit_claim(folder, monkeypatch, capsys):
    run("audit_claim.py", monkeypatch, "--project", folder, "--words", "3", "--samples", "400")
    out = capsys.readouterr().out
    assert "tem claims Pr[M(w)=y]" in out and "no violation was found" in out


def test_notebook(folder, monkeypatch, capsys):
    """The code cells of the notebook run one after the other; the notebook is stored without
    outputs.
    """
    monkeypatch.setenv("LEXVEIL_PROJECT", folder)
    cells = json.loads((EXAMPLES / "first_private_text.ipynb").read_text(encoding="utf-8"))["cells"]
    namespace = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
    out = capsys.readouterr().out
    assert "Not private" in out and out.count("unchanged") == 5
    assert list(Path.cwd().iterdir()) == []
