"""Strategies, document budgets, policies of token classes, and the privacy record."""
