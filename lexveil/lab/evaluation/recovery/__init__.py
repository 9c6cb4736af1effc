"""Measured recovery in the runs of a grid: the words that adversaries name, and the source texts
that they find.
"""
