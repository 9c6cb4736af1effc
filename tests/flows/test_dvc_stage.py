"""One stage's entry in dvc.lock is read and written as DVC itself would."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path

import dvc
import psutil
import pytest
from dvc.utils.serialize import dumps_yaml, loads_yaml

from flows.build import plan
from flows.dvc_forks import DvcForks
from flows.dvc_stage import one_entry
from flows.process import Command
from lexveil.runtime import dvc_economy, lock_journal
from lexveil.runtime.dvc_economy import parsed_once
from lexveil.runtime.dvc_graph import open_repo
from lexveil.runtime.lock_text import HEAD, cut, joined
from lexveil.runtime.project import THREADS, stage_environment
from tests.flows.scratch_project import Project

LOCK = Path(__file__).parents[2] / "dvc.lock"


@pytest.fixture
def forks() -> Iterator[DvcForks]:
    made = DvcForks()
    yield made
    made.close()


def run(forks: DvcForks, stage: str) -> int:
    """Bring a stage up to date in a fork, and return the exit code."""
    command = Command([], stage_environment(), start=partial(forks.start, stage))
    list(command.messages())
    return command.wait()


def test_the_entries_are_the_bytes_that_dvc_writes() -> None:
    text = LOCK.read_text(encoding="utf-8")
    entries = cut(text)
    assert entries is not None and joined(entries) == text
    stages = loads_yaml(text)["stages"]
    assert list(entries) == list(stages)
    assert all(loads_yaml(HEAD + entry)["stages"] == {name: stages[name]} for name, entry in entries.items())
    report = {**stages["report"], "cmd": "echo 'a: b'\n\n# c"}
    changed = {**stages, "report": report, "new@a-1.0": deepcopy(stages["baseline"])}
    ours = entries | {
        name: dumps_yaml({"stages": {name: changed[name]}}).removeprefix("stages:\n")
        for name in ("report", "new@a-1.0")
    }
    assert joined(ours) == dumps_yaml({"schema": "2.0", "stages": changed})


@pytest.mark.parametrize(
    "text",
    [
        "schema: '2.0'\n",
        HEAD + "  a:\n    cmd: x\ndatasets:\n- name: b\n",
        HEAD + "  a:\n    cmd: x",
        HEAD + "  'a: b':\n    cmd: x\n",
        HEAD + "  a:\n    cmd: x\n  a:\n    cmd: y\n",
        HEAD + "<<<<<<< ours\n  a:\n    cmd: x\n",
    ],
)
def test_a_file_of_another_form_is_left_to_dvc(text: str) -> None:
    assert cut(text) is None


def test_an_empty_file_has_no_entries() -> None:
    assert cut("") == {}


@pytest.mark.parametrize("head", ["", "# kept by DVC's own writer\n"])
def test_a_stage_leaves_the_lock_that_dvc_leaves(built: Project, forks: DvcForks, head: str) -> None:
    lock = built.root / "dvc.lock"
    lock.write_text(head + lock.read_text())
    before = lock.read_text()
    source = built.root / "src.txt"
    source.write_text("other words\n")
    built.dvc("repro", "--single-item", "first")
    wanted = lock.read_text()
    assert wanted != before
    lock.write_text(before)
    built.dvc("checkout", "--force")
    assert run(forks, "first") == 0
    assert lock.read_text() == wanted
    assert not list(built.root.glob(".dvc.lock.*"))


def test_dvc_reads_one_entry_of_the_lock_however_it_names_the_file(built: Project) -> None:
    from dvc.repo import Repo

    with Repo() as repo:
        for path in ("dvc.lock", str(built.root / "dvc.lock")):
            assert list(one_entry("count@a")(repo, path).load()["stages"]) == ["count@a"]


def test_what_a_killed_run_left_in_the_journal_is_in_the_lock_of_the_next(built: Project, forks: DvcForks) -> None:
    lock, before, source = built.root / "dvc.lock", built.lock(), built.root / "src.txt"
    source.write_text("other words\n")
    built.dvc("repro", "--single-item", "first")
    wanted = built.lock()
    large = before + f"  gone:\n    cmd: {'x' * lock_journal.SMALL}\n"  # too large to be written for one stage
    lock.write_text(large)
    built.dvc("checkout", "--force")
    assert run(forks, "first") == 0
    assert built.lock() == large and wanted != before
    assert (lock_journal.current("first") or "none") in wanted
    plan(lambda _: None)
    assert built.lock() == wanted and not lock_journal.JOURNAL.exists()


def test_a_fork_ends_as_a_process_does(built: Project, forks: DvcForks) -> None:
    assert run(forks, "first") == 0
    assert run(forks, "nowhere") == 255  # DVC's own code, after what ran before in the same process
    built.behave("first wait 60")
    (built.root / "src.txt").write_text("other words\n")
    command = Command([], stage_environment(), start=partial(forks.start, "first"))
    while not command.inner():
        assert command.process.poll() is None
    left = command.inner()
    command.signal(signal.SIGKILL)
    assert command.wait() == 128 + signal.SIGKILL
    psutil.wait_procs(left, timeout=30)
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)


def test_forks_are_made_again_after_their_maker_was_killed(built: Project, forks: DvcForks) -> None:
    assert run(forks, "first") == 0
    [maker] = [child for child in psutil.Process().children() if "flows.dvc_stage" in child.cmdline()]
    maker.kill()
    psutil.wait_procs([maker], timeout=30)
    assert run(forks, "first") == 0


def test_parameters_are_parsed_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dvc.dependency import param
    from dvc.fs import LocalFileSystem

    parsed: list[str] = []

    def load(path: str, fs: object = None) -> object:
        parsed.append(path)
        return loads_yaml(Path(path).read_text())

    monkeypatch.setattr(param, "load_path", parsed_once(load))
    file, fs = tmp_path / "params.yaml", LocalFileSystem()
    file.write_text("a: {b: 1}\n")
    for _ in range(2):
        assert param.read_param_file(fs, str(file), ["a.b"], flatten=True) == {"a.b": 1}
    param.read_param_file(fs, str(file))["a"]["b"] = 3  # what the caller does with it changes nothing for others
    assert param.read_param_file(fs, str(file)) == {"a": {"b": 1}} and len(parsed) == 1
    file.write_text("a: {b: 22}\n")
    assert param.read_param_file(fs, str(file)) == {"a": {"b": 22}} and len(parsed) == 2


def test_the_pinned_dvc_is_the_one_that_was_read() -> None:
    assert dvc.__version__ == dvc_economy.KNOWN, (
        "lexveil/runtime/dvc_economy.py and flows/dvc_stage.py replace functions of DVC: read those of this version "
        "against them, let `python -m benchmarks.flow --epsilons 1` compare locks and outputs, and set KNOWN"
    )


def test_another_dvc_does_its_own_work(built: Project) -> None:
    """With a version that is not known nothing of DVC is replaced, and the result is the same."""
    code = """
import dvc, sys
dvc.__version__ = "9.9.9"
import dvc.dependency, dvc.dvcfile, dvc.output, dvc.rwlock, dvc.utils.serialize
from dvc.dependency import param
def used():
    output = dvc.output.Output
    return [dvc.dvcfile.Lockfile, dvc.dvcfile.Lockfile._load_yaml, dvc.dependency._get, dvc.utils.serialize.dump_yaml,
        output._build, output.get_hash, output.exists, dvc.rwlock.rwlock, param.load_path, param.read_param_file]
before = used()
from flows import dvc_stage
dvc_stage.look_ahead(["first"])
code = dvc_stage.main("first")
assert used() == before
sys.exit(code)
"""
    lock, before = built.root / "dvc.lock", built.lock()
    (built.root / "src.txt").write_text("other words\n")
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(LOCK.parent)}, check=False)
    ours = lock.read_text()
    lock.write_text(before)
    built.dvc("repro", "--single-item", "first")
    assert (done.returncode, ours) == (0, built.lock()) and ours != before


def test_what_is_stale_is_what_dvc_says(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert plan(said.append).stale == {} and json.loads(built.dvc("status", "--json")) == {}
    changes: list[Callable[[], object]] = [
        lambda: (built.root / "src.txt").write_text("other words\n"),
        lambda: built.set_params("seed: 20261", "seed: 20262"),
        (built.root / "artifacts/counts/a.txt").unlink,
        lambda: (built.root / "artifacts/private/S1/1.0/more.txt").write_text("more\n"),
        lambda: (built.root / "stage.py").write_text((built.root / "stage.py").read_text() + "# other\n"),
        (built.root / "stage.py").unlink,
    ]
    seen = []
    for change in changes:
        change()
        seen.append(set(plan(said.append).stale))
        assert seen[-1] == set(json.loads(built.dvc("status", "--json")))
    assert seen[0] and all(before < after for before, after in itertools.pairwise(seen[:5])) and said == []
    monkeypatch.setattr(dvc, "__version__", "9.9.9")
    assert set(plan(said.append).stale) == seen[-1] and len(said) == 1


def test_what_is_looked_at_ahead_is_looked_at_again_after_a_change(built: Project, forks: DvcForks) -> None:
    forks.ahead = ["first", "nowhere"]
    assert run(forks, "first") == 0 and built.ran() == []
    for words in ("other words\n", "other WORDS\n"):
        (built.root / "src.txt").write_text(words)
        assert run(forks, "first") == 0 and built.ran() == ["first"]
        assert words in (built.root / "artifacts/first.txt").read_text()
        assert json.loads(built.dvc("status", "--json", "first")) == {}


def test_stages_that_depend_on_one_file_have_each_their_own_dependency(built: Project) -> None:
    with open_repo() as repo:
        one, other = (
            next(dep for dep in stage.deps if dep.def_path == "stage.py") for stage in repo.stage.collect("count")
        )
        assert one is not other and one.stage is not other.stage and one.meta is not other.meta
        assert one.annot is not other.annot and one.annot.labels is not other.annot.labels
        assert str(one) == str(other) and one.hash_info == other.hash_info


def test_stages_side_by_side_share_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each has its part of the threads of matrix products, at least one, unless the user says how many."""
    monkeypatch.chdir(tmp_path)
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [stage_environment(at_once).get("OPENBLAS_NUM_THREADS") for at_once in (1, 2, 3, 16)] == [
        None,
        "4",
        "2",
        "1",
    ]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "6")
    assert {name: stage_environment(2)[name] for name in THREADS} == dict.fromkeys(THREADS, "4") | {
        "OPENBLAS_NUM_THREADS": "6"
    }
