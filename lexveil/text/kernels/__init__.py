"""Compiled kernels of texts, loaded on first use."""
