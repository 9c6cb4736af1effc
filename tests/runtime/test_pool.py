"""Workers: order, shared arrays, and that none of them outlives what they work for."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from operator import length_hint
from pathlib import Path

import psutil
import pytest
from pool_functions import die, fail, negative

from lexveil.base.errors import LexveilError
from lexveil.io.execution.pool import ordered_map

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("workers", [1, 2])
def test_order_and_how_much_is_under_way(workers):
    items = iter(range(20))
    results = ordered_map(negative, items, workers)
    assert next(results) == 0
    assert length_hint(items) >= 20 - (workers + 2)
    assert list(results) == [-number for number in range(1, 20)]
    assert list(ordered_map(negative, [], workers)) == []


def children():
    return {
        child.pid
        for child in psutil.Process().children()
        if "runtime import worker" in " ".join(child.cmdline())
    }


def test_what_a_worker_raises_is_raised_here_and_ends_all():
    with pytest.raises(ValueError, match="two"):
        list(ordered_map(fail, range(9), 2))
    assert not children()


def test_an_error_while_workers_start_ends_them_though_nobody_reads_what_waits():
    """The items are larger than a pipe holds."""

    def items():
        yield bytes(2**20)
        yield bytes(2**20)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(ordered_map(len, items(), 2))
    assert not children()


def test_a_killed_worker_is_said():
    with pytest.raises(LexveilError, match=r"a worker process was killed.*machine\.workers"):
        list(ordered_map(die, range(9), 2))
    assert not children()


def test_who_stops_reading_ends_the_workers():
    results = ordered_map(negative, range(1000), 2)
    assert next(results) == 0 and children()
    results.close()
    assert not children()


def test_workers_do_not_outlive_a_process_that_is_killed(tmp_path):
    """The process is killed in the middle of long work; for Ctrl-C see
    tests/privatization/test_workers.py.
    """
    marks = [tmp_path / "a", tmp_path / "b"]
    program = (
        "import sys; from pool_functions import sleep; from lexveil.io.execution.pool "
        "import ordered_map\n"
    )
    program += "list(ordered_map(sleep, sys.argv[1:], 2))"
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    command = [sys.executable, "-c", program, *map(str, marks)]
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE, text=True
    ) as process:
        while not all(mark.exists() for mark in marks):
            assert process.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        _, left = psutil.wait_procs(workers, timeout=600)
        for worker in left:  # a failure leaves nothing behind
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        assert len(workers) >= 2 and left == []
        assert process.stderr is not None and "Traceback" not in process.stderr.read()


def run_script(folder, script):
    """Run a program from its own file, and return its output."""
    (folder / "script.py").write_text(script)
    command = [sys.executable, folder / "script.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", ["prepared_workers('lexveil.io.formats')", "nullcontext()"])
def test_a_script_that_starts_workers_is_not_run_again_by_them(tmp_path, block):
    """The script need not check ``__name__``, as scripts that call ``lexveil.privatize`` often do
    not.
    """
    script = f"""
from contextlib import nullcontext
from operator import neg
from lexveil.io.execution.pool import (ordered_map, prepared_workers)
print("begun")
with {block}:
    print(list(ordered_map(neg, range(4), 2)))
"""
    assert run_script(tmp_path, script) == "begun\n[0, -1, -2, -3]\n"


TWO_THREADS = """
import multiprocessing, operator, os
from concurrent.futures import ThreadPoolExecutor
from lexveil.io.execution.pool import ordered_map

def own(number):
    return number + 1

if __name__ == "__main__":
    before = dict(os.environ)
    with ThreadPoolExecutor(2) as threads:
        lists = threads.map(lambda _: list(ordered_map(operator.neg, range(3), 2)), range(2))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(own, range(3)), *lists)
    print(dict(os.environ) == before)
"""


def test_threads_start_workers_at_once_and_own_processes_of_a_script_start_as_ever(
    tmp_path,
):
    assert run_script(tmp_path, TWO_THREADS) == "[1, 2, 3] [0, -1, -2] [0, -1, -2]\nTrue\n"
