"""Execution of work: stages, processes, checkpoints, DuckDB sessions."""
