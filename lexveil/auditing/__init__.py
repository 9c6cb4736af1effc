"""Exact and sampled tests of a privacy claim."""
