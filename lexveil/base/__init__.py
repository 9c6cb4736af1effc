"""Lowest layer of the library: errors, types, paths and processes. No module of this layer handles
texts.
"""
