"""Prevent PyArrow from importing pandas in processes that Lexveil started."""

from __future__ import annotations

import sys

from lexveil.base.absent import absent


def keep_pandas_out(*, of_process: bool = False) -> None:
    """Prevent PyArrow from importing pandas when it creates its first array. The import would take
    half a second if pandas is installed.

    Call this only in a process that Lexveil started, because PyArrow's conversions from and to
    pandas no longer work afterwards.

    Args:
        of_process: hide pandas from all other libraries of the process, too, for example from
            scikit-learn, which uses pandas if it is installed.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    with absent("pandas", for_good=of_process):
        pa.array([None])  # PyArrow looks for pandas once
