"""Functions that numba compiles, and keeps compiled for as long as all code they were compiled from
stays the same.

Numba compiles a function anew when the file with it changes. But compiled into it are also
functions and constants of other files: were only these changed, by a `git pull` in an editable
install say, the old ones would go on running. So the name under which a function is kept has a hash
of all these files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from lexveil.absent import absent

# Numba looks for SciPy's linear algebra, by which it multiplies matrices: that takes a quarter of a
# second to import, and no kernel does.
with absent("scipy.linalg"):
    import numba.np.arraymath

F = TypeVar("F", bound=Callable[..., Any])
LIBRARY = Path(__file__).parent
IMPORTED = re.compile(rb"^ *(?:from|import) lexveil\b\.?([\w.]*)", re.MULTILINE)


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function when it is first called, with ``options`` of ``numba.njit``, and keep it
    compiled.
    """

    def compiled(function: F) -> F:
        # by which numba names its files
        function.__qualname__ += f"_{code_hash(function.__module__)}"
        return cast(F, numba.njit(cache=True, **options)(function))

    return compiled


@cache
def code_hash(module: str) -> str:
    """A hash of a module's code and of all that it imports of this library, directly or not."""
    files, names = dict[Path, bytes](), [module.partition(".")[2]]
    for name in names:
        path = LIBRARY / name.replace(".", "/")
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
            if file not in files:
                files[file] = file.read_bytes()
                names += [found.decode() for found in IMPORTED.findall(files[file])]
    return hashlib.sha256(repr([files[file] for file in sorted(files)]).encode()).hexdigest()[:16]
