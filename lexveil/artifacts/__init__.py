"""Typed load and save of every artifact, and where it lies."""
