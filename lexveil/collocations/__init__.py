"""Collocation tables: look-up."""
