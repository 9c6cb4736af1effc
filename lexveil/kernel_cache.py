"""Where compiled kernels are kept: where numba keeps any, under names that follow the code of all kernels.

numba looks at a function's own file alone: it would load what another file's code was compiled into, or stop at the
name of a class that an upgrade took away. Imported by each package of kernels, before any of them is compiled.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from numba.core.caching import CacheImpl

from lexveil.paths import LIBRARY

IMPORTS = re.compile(r"^from (lexveil[\w.]+) import", re.MULTILINE)


def kernels_hash() -> str:
    """Of the files of kernels, and of those that they import from."""
    files = {*LIBRARY.glob("*/kernels/*.py")}
    named = {name for file in files for name in IMPORTS.findall(file.read_text(encoding="utf-8"))}
    files |= {(LIBRARY.parent / name.replace(".", "/")).with_suffix(".py") for name in named}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


HASH = kernels_hash()


def _of_library(locator: Any) -> Any:
    class Locator(locator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return super().from_function(py_func, py_file) if Path(py_file).is_relative_to(LIBRARY) else None

        def get_disambiguator(self) -> str:
            return f"{super().get_disambiguator()}-{HASH}"

    return Locator


CacheImpl._locator_classes[:0] = [_of_library(each) for each in CacheImpl._locator_classes[:3]]
