"""Errors, types, paths and processes: the lowest layer of the library, which does not handle
texts.
"""
