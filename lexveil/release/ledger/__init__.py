"""The budget ledger: the spending of each subject over all releases, and the transactions that
charge it.
"""
