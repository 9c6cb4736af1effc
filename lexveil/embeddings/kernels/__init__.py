"""Compiled kernels of the embeddings, loaded on first use."""

import lexveil.kernel_cache  # noqa: F401
