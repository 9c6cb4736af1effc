"""The experiment: code that counts collocations in a corpus, trains embeddings, rewrites documents
with every configured mechanism, evaluates the results and writes a report.

A release imports nothing of this package.
"""
