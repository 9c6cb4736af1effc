"""Decorator for functions that numba compiles, whose disk cache is renewed when any code that they
use changes.

Numba compiles a function again when the file of the function changes. But the compiled code also
contains functions and constants of other files: if only those change, for example by a `git pull`
in an editable install, numba would go on running the old code. So the name of a function in the
cache contains a hash of all these files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from lexveil.base.absent import absent, is_own_process

# Numba imports SciPy's linear algebra for products of matrices. That import takes a quarter of a
# second, and no kernel multiplies matrices. Other programs may compile such products.
if is_own_process():
    with absent("scipy.linalg"):
        import numba.np.arraymath

import numba

F = TypeVar("F", bound=Callable[..., Any])
LIBRARY = Path(__file__).parents[1]
IMPORTED = re.compile(rb"^ *(?:from|import) lexveil\b\.?([\w.]*)", re.MULTILINE)


def kernel(**options: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a function at its first call and caches the compiled code on
    disk.

    Args:
        options: options of ``numba.njit``.
    """

    def compiled(function: F) -> F:
        # numba names its cache files by the qualified name
        function.__qualname__ += f"_{code_hash(function.__module__)}"
        return cast(F, numba.njit(cache=True, **options)(function))

    return compiled


@cache
def code_hash(module: str) -> str:
    """Return the first 16 hex digits of a SHA-256 over a module and all modules of this library
    that it imports, directly or not.
    """
    files = dict[Path, bytes]()
    names = [module.partition(".")[2]]
    for name in names:
        path = LIBRARY / name.replace(".", "/")
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
            if file not in files:
                files[file] = file.read_bytes()
                names += [found.decode() for found in IMPORTED.findall(files[file])]
    return hashlib.sha256(repr([files[file] for file in sorted(files)]).encode()).hexdigest()[:16]
