"""Compiled loops (numba) of the adversaries. They are imported on first use, because importing
numba takes a second.
"""
