"""Page of `lexveil explore`, which segments and rewrites texts as experiments. It uses no
ledger.
"""
