"""Faults of disks, caches, servers and clocks: the next run ends with the bytes of an undisturbed one, or says why not.

Kills of the run itself and of its leftovers, an unreachable server and a second run are in test_recovery.py; a dvc.lock
cut in half is in test_build.py; a killed worker and half-written checkpoints are in tests/runtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import yaml
from scratch_project import ROOT, Project, Run

from flows.data_bootstrap import ensure_data
from flows.prefect_server import answers_within
from lexveil.config import MachineParams, load_params
from lexveil.errors import LexveilError, ParameterError, RequestError, advised
from lexveil.runtime import duckdb_session
from lexveil.runtime.run_events import RunObserver

pytestmark = pytest.mark.slow

PATIENCE = 60  # seconds until a test gives up waiting; nothing is measured by it

RunFlow = Callable[[], Run]
Mount = Callable[..., Path]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mount over a folder, with `mount OPTIONS... FOLDER`; what is still mounted at the end is taken away."""
    mounted: list[Path] = []

    def over(folder: Path, *options: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if "remount" not in ",".join(options):
            mounted.append(folder)
        if subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here")
        return folder

    yield over
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def small_disk(mount: Mount, folder: Path, megabytes: int = 1) -> None:
    mount(folder, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs")


def lexveil(project: Project, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command in the project, without any Prefect server unless the environment names one."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PREFECT_API_URL", "PREFECT_HOME")}
    return subprocess.Popen(
        [sys.executable, "-m", "lexveil.cli", *arguments],
        cwd=project.root, env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def same_as(built_template: Path, project: Project) -> bool:
    undisturbed = Project(built_template)
    return (project.artifacts(), project.lock()) == (undisturbed.artifacts(), undisturbed.lock())


def objects(project: Project) -> dict[str, Path]:
    """DVC's copy of each output, by the output's path."""
    entries = yaml.safe_load(project.lock())["stages"].values()
    hashes = {out["path"]: out["md5"] for entry in entries for out in entry["outs"]}
    return {path: project.root / ".dvc/cache/files/md5" / md5[:2] / md5[2:] for path, md5 in hashes.items()}


def overwrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change bytes as a failing disk does: mode and times stay."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(change(file.read_bytes()))
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def other_first_byte(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


def make_stale(project: Project) -> None:
    """Let `check` run again, to the same result."""
    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")


# Processes


def test_a_killed_stage_is_said_and_the_next_run_makes_it(built: Project, run: RunFlow, built_template: Path) -> None:
    make_stale(built)
    built.behave("check die")
    failed = run()
    code, error = failed.code, failed.error
    assert code == 1
    assert error.startswith("check: the stage was killed (signal 9)") and ".lexveil/logs/check.log" in error
    assert not (built.root / "artifacts/checks/outputs.json").exists()
    built.behave()
    built.ran()
    assert run().code == 0
    assert built.ran() == ["check"]
    assert built.artifacts() == Project(built_template).artifacts()


def test_a_killed_worker_of_a_stage_is_said_and_the_next_run_makes_it(
    built: Project, run: RunFlow, built_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage maps over two processes; the first word of the mapping is SIGKILL, as from a machine out of memory."""
    (built.root / "pooled.py").write_text(
        "import os, runpy, sys\n"
        "from pathlib import Path\n"
        "from lexveil.runtime.pool import ordered_map\n"
        "from lexveil.runtime.stage import stage_main\n"
        "def work(number):\n"
        "    if Path('kill').exists():\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return number\n"
        "def main():\n"
        "    out = Path(sys.argv[1])\n"
        "    assert list(ordered_map(work, range(9), 2)) == list(range(9))\n"
        "    runpy.run_path('stage.py', run_name='__main__')\n"
        "if __name__ == '__main__':\n"
        "    stage_main(main)\n"
    )
    file = built.root / "dvc.yaml"
    file.write_text(file.read_text().replace("stage.py artifacts/checks", "pooled.py artifacts/checks"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (built.root / "kill").touch()
    failed = run()
    code, error = failed.code, failed.error
    assert code == 1
    assert error.startswith("check: LexveilError: a worker process was killed") and "machine.workers" in error
    (built.root / "kill").unlink()
    assert run().code == 0
    assert built.artifacts() == Project(built_template).artifacts()


@contextlib.contextmanager
def network(url: str) -> Iterator[tuple[str, threading.Event]]:
    """Give another address of a server on loopback, and an event after which no byte gets through."""
    target, lost = urlsplit(url), threading.Event()
    ends: list[socket.socket] = []

    def carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if lost.is_set():
                    return  # taken in, never answered
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection((target.hostname, target.port))
                ends.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{target.path}", lost
    for end in ends:
        end.close()


def until_check_waits(project: Project, process: subprocess.Popen[str]) -> int:
    """Wait until `check` is in the middle of its work, and return its process id."""
    deadline = time.monotonic() + 2 * PATIENCE
    while not (waiting := list(project.root.glob("waiting-*"))):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(waiting[0].name.removeprefix("waiting-"))


@pytest.mark.nightly
def test_a_killed_server_costs_the_record_and_not_the_work(built: Project, run: RunFlow, built_template: Path) -> None:
    """The server of one run is killed in the middle of a stage; the stage ends well, and so do those after it."""
    make_stale(built)
    (built.root / "data").mkdir()
    (built.root / "data/any.txt").touch()
    built.behave("check wait 3")
    process = lexveil(built, "run", PREFECT_CLIENT_MAX_RETRIES="1")
    until_check_waits(built, process)
    (server,) = (
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if child.cmdline()[1:3] == ["-m", "prefect"]
    )
    server.kill()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "check ... done" in out and "report ... cached" in out
    assert err.count("\n") == 1 and "went away during the run" in err and "1 ran, 6 cached" in err
    built.ran()
    assert run().code == 0
    assert built.ran() == []
    assert built.artifacts() == Project(built_template).artifacts()


@pytest.mark.nightly
def test_a_network_that_is_lost_is_said_after_what_failed(
    built: Project, run: RunFlow, prefect_server: str, built_template: Path
) -> None:
    """The server takes connections and says nothing any more, as when it is paused or its packets are dropped."""
    make_stale(built)
    (built.root / "data").mkdir()
    (built.root / "data/any.txt").touch()
    built.behave("check wait 600")
    with network(prefect_server) as (url, lost):
        process = lexveil(
            built, "run", PREFECT_API_URL=url, PREFECT_CLIENT_MAX_RETRIES="1", PREFECT_API_REQUEST_TIMEOUT="1"
        )
        stage = until_check_waits(built, process)
        lost.set()
        os.kill(stage, signal.SIGKILL)
        _, err = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 1
    assert err.count("\n") == 1 and err.startswith("lexveil run: check: the stage was killed (signal 9)")
    assert f"server at {url} went away during the run" in err and "5 cached, 1 failed, 1 not run" in err
    built.behave()
    assert run().code == 0
    assert built.artifacts() == Project(built_template).artifacts()


def test_a_server_is_waited_for_and_one_that_is_not_there_is_told(prefect_server: str) -> None:
    assert answers_within(prefect_server, 0)
    assert not answers_within("http://127.0.0.1:9/api", 1)


# Disks


@pytest.mark.parametrize("folder", ["artifacts", pytest.param(".dvc/cache", marks=pytest.mark.nightly)])
def test_a_full_disk_is_said_and_the_next_run_is_as_if_it_had_not_been(
    project: Project, run: RunFlow, mount: Mount, folder: str
) -> None:
    """Five outputs of 300 kB and more do not fit into 1 MB, wherever they or DVC's copies of them lie."""
    (project.root / "src.txt").write_text("x" * 300_000 + "\n")
    small_disk(mount, project.root / folder)
    failed = run()
    code, error = failed.code, failed.error
    assert code == 1
    assert "No space left on device; free some space" in error and "run again" in error
    mount(project.root / folder, "-o", "remount,size=64m")
    assert run().code == 0
    first = "x" * 300_000 + "\nfirst\n"
    counted = f"{first}count@a\n{first}count@b\n"
    outputs = {f"artifacts/private/{s}/1.0/documents.txt": f"{counted}privatize@{s}-1.0\n" for s in ("S1", "S2")}
    made = {name: content.decode() for name, content in project.artifacts().items()}
    assert made == {
        "artifacts/first.txt": first,
        "artifacts/counts/a.txt": f"{first}count@a\n",
        "artifacts/counts/b.txt": f"{first}count@b\n",
        **outputs,
        "artifacts/checks/outputs.json": "".join(outputs.values()) + "check\n",
        "artifacts/report/index.html": "".join(outputs.values()) + "check\nreport\n",
    }
    # What DVC kept in its cache is whole, and nothing of what it could not finish is left there.
    kept = [file for file in (project.root / ".dvc/cache/files/md5").rglob("*") if file.is_file()]
    assert kept
    for file in kept:
        assert hashlib.md5(file.read_bytes()).hexdigest() == file.parent.name + file.name.removesuffix(".dir")


def test_room_for_spilled_rows_that_is_full_is_said(tmp_path: Path, mount: Mount) -> None:
    small_disk(mount, tmp_path / "spill", 8)
    machine = MachineParams(memory_limit="40MB", threads=1, workers=1, temp_directory=str(tmp_path / "spill"))
    query = "select i, md5(i::varchar) h from range(3_000_000) t(i) order by h"
    with pytest.raises(LexveilError, match=r"machine\.temp_directory"), duckdb_session.session(machine) as con:
        con.execute(f"copy ({query}) to '{tmp_path / 'sorted.parquet'}'")
    assert list((tmp_path / "spill").iterdir()) == []


def test_artifacts_that_cannot_be_written_are_said_and_stay(
    built: Project, run: RunFlow, mount: Mount, built_template: Path
) -> None:
    make_stale(built)
    folder = built.root / "artifacts"
    mount(folder, "--bind", str(folder))
    mount(folder, "-o", "remount,ro,bind")
    failed = run()
    code, error = failed.code, failed.error
    assert (
        code == 1 and error.startswith("check: ") and "Read-only file system" in error and "make it writable" in error
    )
    assert built.artifacts() == Project(built_template).artifacts()
    mount(folder, "-o", "remount,rw,bind")
    assert run().code == 0
    assert built.artifacts() == Project(built_template).artifacts()


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_project_on_a_full_or_read_only_disk_is_one_line(project: Project, mount: Mount, state: str) -> None:
    elsewhere = project.root.with_name("elsewhere")
    small_disk(mount, elsewhere)
    shutil.copytree(project.root, elsewhere, dirs_exist_ok=True, symlinks=True)
    if state == "full":
        with pytest.raises(OSError, match="No space left"), (elsewhere / "filling").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
    else:
        mount(elsewhere, "-o", "remount,ro")
    process = lexveil(Project(elsewhere), "run")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("lexveil run: ") and "run again" in err


def test_only_errors_of_a_disk_are_given_advice() -> None:
    full = OSError(28, "No space left on device", "artifacts/words.parquet")
    assert advised(str(full)).startswith(f"{full}; free some space")
    assert advised("CheckFailed: nothing holds") == "CheckFailed: nothing holds"


# What DVC keeps


def test_a_changed_output_is_made_good(built: Project, run: RunFlow, built_template: Path) -> None:
    (built.root / "artifacts/first.txt").write_bytes(
        other_first_byte((built.root / "artifacts/first.txt").read_bytes())
    )
    assert run().code == 0
    assert built.ran() == []
    assert same_as(built_template, built)


def test_a_damaged_cache_is_never_given_back(built: Project, run: RunFlow, built_template: Path) -> None:
    """Files and lists of a folder's files; all write-protected, so that DVC takes them for whole."""
    copies = objects(built)
    assert {copy.stat().st_mode & 0o777 for copy in copies.values()} == {0o444}
    overwrite(copies["artifacts/first.txt"], other_first_byte)
    overwrite(copies["artifacts/counts/a.txt"], lambda content: content[: len(content) // 2])
    copies["artifacts/counts/b.txt"].unlink()
    overwrite(copies["artifacts/private/S1/1.0"], lambda content: content.replace(b"documents", b"dokuments"))
    overwrite(copies["artifacts/private/S2/1.0"], lambda content: content[: len(content) // 2])
    left = [copies["artifacts/first.txt"].with_name(".aB_c-d.tmp"), built.root / "artifacts/counts/.aB_c-d.tmp"]
    for file in left:
        file.write_text("half")
    shutil.rmtree(built.root / "artifacts/private")
    for name in ("first.txt", "counts/a.txt", "counts/b.txt"):
        (built.root / "artifacts" / name).unlink()
    assert run().code == 0
    assert sorted(built.ran()) == ["count@a", "count@b", "first", "privatize@S1-1.0", "privatize@S2-1.0"]
    assert same_as(built_template, built)
    assert not any(file.exists() for file in left)


def test_damaged_data_are_not_taken_from_the_cache(project: Project) -> None:
    Path("data").mkdir()
    Path("data/mine.txt").write_text("mine")
    project.dvc("add", "--quiet", "data")
    shutil.rmtree("data")
    md5 = hashlib.md5(b"mine").hexdigest()
    overwrite(Path(".dvc/cache/files/md5", md5[:2], md5[2:]), other_first_byte)
    with pytest.raises(RequestError, match="lexveil data"):
        ensure_data(RunObserver())
    assert not Path("data").exists()


def test_locks_of_a_dead_dvc_hold_nothing_up(built: Project, run: RunFlow, built_template: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    make_stale(built)
    temporary = built.root / ".dvc/tmp"
    entry = {"pid": dead.pid, "cmd": "dvc repro"}
    outs = {str(built.root / "artifacts/checks/outputs.json"): entry, str(built.root / "artifacts/first.txt"): entry}
    (temporary / "rwlock").write_text(json.dumps({"write": outs, "read": {path: [entry] for path in outs}}))
    (temporary / "lock").write_text(f"{dead.pid:>10}\n")
    assert run().code == 0
    assert built.ran() == ["check"]
    assert built.artifacts() == Project(built_template).artifacts()


# Other files, and the clock


def test_params_cut_short_anywhere_are_refused(tmp_path: Path) -> None:
    lines = (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path / "params.yaml"
    for number in range(len(lines)):
        file.write_text("".join(lines[:number]), encoding="utf-8")
        with pytest.raises(ParameterError, match=r"params\.yaml"):
            load_params(file)
    file.write_text("".join(lines), encoding="utf-8")
    load_params(file)


def test_half_a_params_file_is_one_line_and_the_whole_one_runs(
    built: Project, run: RunFlow, built_template: Path
) -> None:
    whole = (built.root / "params.yaml").read_text()
    (built.root / "params.yaml").write_text(whole[: len(whole) // 2])
    process = lexveil(built, "run")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1) and "params.yaml" in err
    (built.root / "params.yaml").write_text(whole)
    assert run().code == 0
    assert built.ran() == []
    assert same_as(built_template, built)


def test_nothing_is_decided_by_the_clock(built: Project, run: RunFlow, built_template: Path) -> None:
    """Times of files far in the future and in the past make nothing stale, and a change older than all is seen."""
    files = [file for file in built.root.rglob("*") if file.is_file() and ".git" not in file.parts]
    for when in (4_000_000_000, 1):
        for file in files:
            if file.exists():
                os.utime(file, (when, when))
        assert run().code == 0
        assert built.ran() == []
        assert same_as(built_template, built)
    made = built.root / "artifacts/checks/outputs.json"
    made.write_bytes(other_first_byte(made.read_bytes()))
    os.utime(made, (0, 0))
    assert run().code == 0
    assert same_as(built_template, built)
