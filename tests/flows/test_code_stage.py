"""`dvc repro`, typed by hand after a change of code, runs what depends on that code, and nothing else."""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]

WRITE_CODE = """
import json
from pathlib import Path

Path("code.json").write_text(json.dumps({name: Path(name + ".lib").read_text() for name in ("one", "two")}))
"""
STAGES = {
    name: {
        "cmd": f'{sys.executable} -c "import pathlib; pathlib.Path(\\"{name}.txt\\").write_text(\\"made\\")"',
        "params": [{"code.json": [name]}],
        "outs": [f"{name}.txt"],
    }
    for name in ("one", "two")
}


def dvc(*arguments: str) -> str:
    return subprocess.run([sys.executable, "-m", "dvc", *arguments], check=True, capture_output=True, text=True).stdout


def test_a_change_of_code_runs_what_depends_on_it(tmp_path: Path, monkeypatch) -> None:
    code = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["code"]
    assert code.pop("cmd") == "python -m tasks.code"
    stages = {"code": code | {"cmd": f"{sys.executable} write_code.py"}} | STAGES
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
    (tmp_path / "write_code.py").write_text(WRITE_CODE)
    for name in ("one", "two"):
        (tmp_path / f"{name}.lib").write_text("first")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "--quiet"], check=True)
    dvc("init", "--quiet")
    first = dvc("repro")
    assert "Running stage 'one'" in first and "Running stage 'two'" in first
    (tmp_path / "two.lib").write_text("second")
    second = dvc("repro")
    assert "Running stage 'two'" in second and "Stage 'one' didn't change, skipping" in second
    assert "Running stage 'two'" not in dvc("repro")
