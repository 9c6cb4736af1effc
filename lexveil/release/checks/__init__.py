"""Expectations on a release, and the Data Docs with their results."""
