"""Databases: rows of a query as Arrow batches, and tables for rewritten rows."""
