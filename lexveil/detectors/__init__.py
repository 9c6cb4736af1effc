"""Detectors: they say where names, numbers and the like stand in a text. No claim relies on what
they find.
"""
