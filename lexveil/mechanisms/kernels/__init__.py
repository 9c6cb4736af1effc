"""Compiled kernels of the mechanisms: the only modules of theirs that import numba, loaded on first
use.
"""
