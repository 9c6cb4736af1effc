"""Processes in which PyArrow does not import pandas."""

from __future__ import annotations

import sys

from lexveil.base.absent import absent


def keep_pandas_out(*, of_process: bool = False) -> None:
    """Prevent PyArrow from importing pandas, which it does at its first array if pandas is
    installed, and which takes half a second.

    Call this in a process of its own, because PyArrow's conversions from and to pandas are off
    afterwards.

    Args:
        of_process: whether other libraries of the process cannot import pandas either, for example
            scikit-learn, which uses it if it is installed.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    with absent("pandas", for_good=of_process):
        pa.array([None])  # it looks for pandas once
