"""Processes, Dask, DuckDB sessions, atomic files, locks, checkpoints, progress."""
