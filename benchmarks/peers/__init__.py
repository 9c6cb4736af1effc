"""Comparison of Lexveil with the public implementations of the same mechanisms, each in an
environment of its own.
"""
