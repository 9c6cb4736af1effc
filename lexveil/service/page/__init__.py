"""The page of `lexveil explore`: texts are cut and rewritten as experiments, to look at. No ledger
is touched.
"""
