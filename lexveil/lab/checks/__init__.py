"""Great Expectations suites that check the artifacts of the experiment. Each suite checks numbers
that an SQL query aggregated from an artifact.
"""
