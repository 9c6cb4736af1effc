"""Compiled kernels of the mechanisms, loaded on first use. Other modules of the mechanisms do not
import numba.
"""
