"""Compiled kernels of text processing, loaded on first use."""
