"""The experiment: a corpus becomes collocations, embeddings, runs, their evaluation and a report.

A release needs nothing of it.
"""
