"""The library changes nothing in the process of a program that imports and calls it."""

import json
import os
import subprocess
import sys

import pytest

from tests.asking import ESTIMATE_QUICKLY
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

# A program that has imported what Lexveil is built on, and says what of its process has changed
# after each step.
HOST = """
import concurrent.futures.process, faulthandler, gc, importlib, json, locale, logging
import multiprocessing.context, multiprocessing.forkserver, multiprocessing.pool
import multiprocessing.spawn, os, random, signal, subprocess, sys, tempfile, threading, warnings
import cyclopts, filelock, jinja2, numba, numpy, pandas, platformdirs, psutil, pyarrow.compute
import pyarrow.parquet, pydantic, randomgen, rich.console, scipy.linalg, scipy.special
import scipy.stats, yaml

MODULES = dict(sys.modules)
FUNCTIONS = {
    (name, key): value
    for name, module in MODULES.items()
    if name.partition(".")[0] in sys.stdlib_module_names or name.startswith("numba")
    for key, value in vars(module).items()
    if callable(value)
}
INTERNAL = {"__builtins__", "_random", "_cache", "__warningregistry__"}

def state():
    found = {
        "modules": [n for n, module in MODULES.items() if sys.modules.get(n) is not module],
        "functions": [
            f"{name}.{key}"
            for (name, key), value in FUNCTIONS.items()
            if getattr(MODULES[name], key, None) is not value and key not in INTERNAL
        ],
        "environment": dict(os.environ),
        "signals": [repr(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
        "blocked signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "warnings": [str(each) for each in warnings.filters],
        "loggers": [repr(each) for each in (*logging.root.handlers, *logging.root.filters)],
        "root level": logging.root.level,
        "log failures": logging.raiseExceptions,
        "disabled logs": logging.root.manager.disable,
        "logger class": repr(logging.getLoggerClass()),
        "finders": [repr(each) for each in (*sys.meta_path, *sys.path_hooks)],
        "search path": list(sys.path),
        "arguments": list(sys.argv),
        "hooks": [id(h) for h in (sys.excepthook, sys.unraisablehook, threading.excepthook)],
        "streams": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "locale": locale.setlocale(locale.LC_ALL),
        "random": hash(random.getstate()),
        "random of NumPy": numpy.random.get_state()[1].tolist(),
        "errors of NumPy": numpy.geterr(),
        "threads of Numba": numba.get_num_threads(),
        "folder": os.getcwd(),
        "mask of files": os.umask(0o22),
        "recursion": sys.getrecursionlimit(),
        "collector": [gc.isenabled(), gc.get_freeze_count() > 0, *gc.get_threshold()],
        "start of processes": multiprocessing.get_start_method(allow_none=True),
        "threads": [thread.name for thread in threading.enumerate()],
        "processes": [child.pid for child in psutil.Process().children()],
        "priority": os.nice(0),
        "temporary folder": tempfile.tempdir,
    }
    os.umask(found["mask of files"])
    return json.loads(json.dumps(found))

random.seed(1)
tempfile.gettempdir()
changed = {}
before = state()
for step, program in enumerate(PROGRAMS):
    exec(program)
    after = state()
    for name in before:
        if after[name] != before[name]:
            changed[f"{program}: {name}"] = [before[name], after[name]]
    before = after
print(json.dumps(changed))
"""

PRIVATIZE = """lexveil.privatize(
    ["The fire burned for days, and the smoke hung over the city."] * 9,
    mechanism="tem_context", strategy="S3", epsilon=10.0, model="toy", QUIET
)"""


def changes_of(programs, folder):
    """Run a program in steps in a process of its own; what each step changed."""
    done = subprocess.run(
        [sys.executable, "-c", f"PROGRAMS = {programs!r}\n{HOST}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_neither_an_import_nor_a_call_changes_anything(outside):
    """Calls in the process, in workers, and without progress, one after the other."""
    ways = ("workers=1", "workers=2", "workers=1, quiet=True")
    steps = [
        "import lexveil",
        "import lexveil.api",
        "[getattr(lexveil, n) for n in dir(lexveil)]",
        ESTIMATE_QUICKLY,
        *(PRIVATIZE.replace("QUIET", way) for way in ways),
    ]
    assert changes_of(steps, outside) == {}


def test_changes_are_found(tmp_path):
    changed = changes_of(["os.environ['A'] = 'b'", "os.getlogin = os.getppid"], tmp_path)
    assert [name.rpartition(": ")[2] for name in changed] == ["environment", "functions"]


def test_a_program_that_multiplies_matrices_by_numba_imports_scipy_as_ever(outside):
    program = (
        f"import sys, lexveil\n{ESTIMATE_QUICKLY}\n{PRIVATIZE.replace('QUIET', 'workers=1')}\n"
        "assert sys.modules['numba'] and 'scipy.linalg' in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=outside,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
