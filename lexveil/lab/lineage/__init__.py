"""Provenance of artifacts: which stages, inputs and code made them, verification of their hashes,
garbage collection, and OpenLineage events.
"""
