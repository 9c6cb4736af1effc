"""Accounting: strategies, document budgets, policies of token classes, privacy measurements with
proven bounds, and the privacy record.
"""
