"""Rows in, rows out: files, tables in memory, databases, the DVC stage."""
