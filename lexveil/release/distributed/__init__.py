"""Rewriting in a cluster, next to the data: the code that Spark and Ray share.

``Rewriter`` counts and rewrites Arrow batches in any process. ``release_table`` charges the ledger
in the driver.
"""
