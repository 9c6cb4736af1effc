"""Compiled kernels of the mechanisms: the only modules of theirs that import numba, loaded on first use."""

import lexveil.kernel_cache  # noqa: F401
