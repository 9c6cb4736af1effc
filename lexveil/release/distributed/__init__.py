"""Rewriting on a cluster, where the data is: the code that Spark and Ray share.

``Rewriter`` counts and rewrites Arrow batches in any process. ``release_table`` charges the ledger
in the driver.
"""
