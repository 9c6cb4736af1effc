"""What is compiled is compiled anew when any code changes that is part of it."""

import os
import subprocess
import sys
from pathlib import Path

from lexveil import compiled

INLINED = """
import numba
from lexveil.constants import STEP
@numba.njit(inline="always")
def helper(x):
    return x + STEP
"""
CALLER = """
from lexveil.compiled import kernel
from lexveil.helpers import helper
@kernel()
def caller(x):
    return helper(x)
print(caller(10), caller.stats.cache_hits.total())
"""


def test_a_change_of_what_is_inlined_from_another_file_is_compiled(tmp_path: Path) -> None:
    library = tmp_path / "lexveil"
    library.mkdir()
    (library / "compiled.py").write_bytes(Path(compiled.__file__).read_bytes())
    code = {"__init__": "", "constants": "STEP = 1", "helpers": INLINED, "caller": CALLER}
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}

    def ran(**changed: str) -> str:
        for name, text in (code | changed).items():
            (library / f"{name}.py").write_text(text)
        command = [sys.executable, "-c", "import lexveil.caller"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    assert [ran(), ran()] == ["11 0\n", "11 1\n"]  # the second takes what the first has compiled
    assert ran(helpers=INLINED.replace("x + STEP", "x - STEP")) == "9 0\n"
    assert ran(constants="STEP = 5") == "15 0\n"
