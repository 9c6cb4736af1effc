"""Databases: queries that return rows as Arrow batches, and tables for rewritten rows."""
