"""Compiled kernels of file formats, loaded on first use: see ``lexveil.compiled``."""
