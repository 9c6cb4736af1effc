"""Typed loading and saving of all artifacts, and their paths."""
