"""Rewriting where the data is: what the engines of clusters (Spark, Ray) share.

``Rewriter`` counts and rewrites Arrow batches in any process; ``release_table`` charges for them in
the driver.
"""
