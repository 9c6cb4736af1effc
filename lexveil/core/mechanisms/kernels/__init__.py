"""Compiled kernels of the mechanisms; they are compiled and loaded on first use. Other modules of
the mechanisms do not import numba.
"""
