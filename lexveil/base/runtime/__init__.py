"""Runtime support: processes, Dask, DuckDB sessions, atomic files, locks, checkpoints, progress."""
