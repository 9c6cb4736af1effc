"""HTTP service that rewrites texts for other programs, and charges the budget ledger for each
request before it answers.
"""
