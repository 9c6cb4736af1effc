"""Metric differential privacy for text, collocation by collocation."""
