"""Models that are handed on: what of a corpus goes into one, and its card."""
