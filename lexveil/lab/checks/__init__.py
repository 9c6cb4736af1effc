"""Great Expectations suites for numbers that SQL aggregated from the artifacts."""
