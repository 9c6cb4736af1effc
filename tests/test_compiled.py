"""Compiled kernels are recompiled if any code that is part of them changes."""

import os
import subprocess
import sys
from pathlib import Path

from lexveil.base import absent, compiled

HELPER = """
import numba
from lexveil.constants import STEP
@numba.njit(inline="always")
def helper(x):
    return x + STEP
"""
CALLER = """
from lexveil.base.compiled import kernel
from lexveil.helper import helper
@kernel()
def caller(x):
    return helper(x)
print(caller(10), caller.stats.cache_hits.total())
"""


def test_a_change_of_what_is_inlined_from_another_file_is_compiled(tmp_path):
    code = {
        each.__name__[8:].replace(".", "/"): Path(each.__file__).read_text(encoding="utf-8")
        for each in (absent, compiled)
    }
    code |= {"__init__": "", "base/__init__": "", "caller": CALLER}
    (tmp_path / "lexveil/base").mkdir(parents=True)

    def ran(helper, constants):
        for name, text in (code | {"helper": helper, "constants": constants}).items():
            (tmp_path / f"lexveil/{name}.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", "import lexveil.caller"]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, stdout=-1, text=True
        ).stdout

    steps = [
        (HELPER, "STEP = 1"),
        (HELPER, "STEP = 1"),
        (HELPER, "STEP = 5"),
        (HELPER.replace("+", "-"), "STEP = 5"),
    ]
    # The value, and whether it comes of what was compiled before.
    assert [ran(*step) for step in steps] == ["11 0\n", "11 1\n", "15 0\n", "5 0\n"]
