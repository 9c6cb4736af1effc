"""Compiled kernels are kept under names that follow the code of all of them; those of others as numba names them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from lexveil import kernel_cache, paths
from lexveil.embeddings.kernels import search
from lexveil.mechanisms.kernels import tem


def kept_as(function: Callable[..., Any]) -> str:
    return numba.njit(cache=True)(function)._cache._impl.filename_base


def test_what_is_compiled_of_other_code_is_not_found(tmp_path: Path) -> None:
    """Also of files that kernels import from: their constants are compiled in."""
    assert kept_as(search.insert.py_func).count(kernel_cache.HASH) == 1
    assert kernel_cache.HASH not in kept_as(lambda x: x)
    assert {"lexveil.mechanisms.rejection", "lexveil.types"} <= {*kernel_cache.IMPORTS.findall(source(tem))}


def source(module: Any) -> str:
    return Path(module.__file__).read_text(encoding="utf-8")
