"""Processes without pandas."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class _Absent(MetaPathFinder):
    """Finds that there is no pandas."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def keep_pandas_out(*, of_process: bool = False) -> None:
    """See that PyArrow does not import pandas, which it does for its first array if there is one: half a second.

    For a process of its own, since its conversions from and to pandas are off from here on.

    Args:
        of_process: no other library gets it either, scikit-learn for one, which takes it where it is there.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([None])  # it looks once
    finally:
        if not of_process:
            sys.meta_path.remove(absent)
