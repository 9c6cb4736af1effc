"""The command line `lexveil`. Each verb is a module, and the signature of its function defines its
options.
"""
