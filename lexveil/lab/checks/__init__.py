"""Great Expectations suites for the experiment's artifacts. Each suite judges numbers that SQL
aggregated from an artifact.
"""
