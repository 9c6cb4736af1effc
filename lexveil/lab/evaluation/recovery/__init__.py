"""Measured recovery of source texts from the runs of the experiment grid: the source words that
adversaries guess, and the source texts that they find.
"""
