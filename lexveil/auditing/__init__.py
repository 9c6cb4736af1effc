"""Audits: exact and sampled tests of a privacy claim."""
