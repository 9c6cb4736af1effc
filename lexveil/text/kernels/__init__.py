"""Compiled kernels of texts, loaded on first use."""

import lexveil.kernel_cache  # noqa: F401
