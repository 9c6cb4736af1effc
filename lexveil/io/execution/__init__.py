"""How work is carried out: stages, processes, checkpoints, DuckDB sessions."""
