"""Utilities for processes that run stages: arrays, hashes, atomic files, object storage, run
events. No module here handles texts.
"""
