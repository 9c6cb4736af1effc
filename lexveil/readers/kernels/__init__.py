"""Compiled loops of the adversaries, imported on first use, because numba takes a
second to load.
"""
