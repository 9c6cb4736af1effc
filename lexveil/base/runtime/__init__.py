"""Utilities for runs: arrays, hashes, atomic files, object storage, run events. None handles
texts.
"""
