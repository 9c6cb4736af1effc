"""Processes without pandas."""

from __future__ import annotations

import sys

from lexveil.absent import absent


def keep_pandas_out(*, of_process: bool = False) -> None:
    """See that PyArrow does not import pandas, which it does for its first array if there is one:
    half a second.

    For a process of its own, since its conversions from and to pandas are off from here on.

    Args:
        of_process: no other library gets it either, scikit-learn for one, which takes it where it
            is there.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    with absent("pandas", for_good=of_process):
        pa.array([None])  # it looks once
