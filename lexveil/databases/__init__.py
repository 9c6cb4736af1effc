"""Databases: the rows of a query as Arrow batches, and tables that rewritten rows are put into."""
