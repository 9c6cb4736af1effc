"""Accounting: strategies, document budgets, policies of token classes, proven measurements, and the
privacy record.
"""
