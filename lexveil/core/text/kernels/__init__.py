"""Compiled kernels of text processing; they are compiled and loaded on first use."""
