"""Execution of work: stages, worker processes, checkpoints, DuckDB sessions."""
