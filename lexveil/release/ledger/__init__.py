"""The budget ledger, which records how much epsilon each subject (the person behind the texts) has
spent over all releases, and the transactions that charge it.
"""
