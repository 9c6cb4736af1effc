"""Compiled loops of the readers. Nothing here is imported before it is needed: numba takes a second
to load.
"""
