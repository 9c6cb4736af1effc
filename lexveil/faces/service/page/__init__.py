"""The web page of `lexveil explore`, which tokenizes and rewrites texts as experiments. The page
uses no budget ledger.
"""
