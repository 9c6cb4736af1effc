"""The budget ledger: what each subject has spent over all releases, and the transactions that
charge it.
"""
