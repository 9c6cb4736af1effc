"""Benchmarks of speed and quality, as ratios to a plain implementation and to the machine's own
limit, measured in the same run.

Benchmarks are part of no run and of no test, and nothing asserts a time.
"""
