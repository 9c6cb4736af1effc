"""Detectors, which find names, numbers and the like in texts. No privacy claim relies on their
findings.
"""
