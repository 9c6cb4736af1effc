"""`lexveil release`: rewrites, checks and archives the new documents of an inbox folder or a
database.
"""
