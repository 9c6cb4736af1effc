"""The experiment: it turns a corpus into collocations, embeddings, runs, their evaluation and a
report.

A release imports nothing of this package.
"""
