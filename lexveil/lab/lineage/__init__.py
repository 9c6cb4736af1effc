"""Provenance of artifacts: trace, verification, garbage collection, OpenLineage events."""
