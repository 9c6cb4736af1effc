"""How fast things are, in ratios: to the plain way of doing them and to the machine's own limit, in
the same run.

Nothing here is part of a run or of the tests, and nothing asserts a time.
"""
