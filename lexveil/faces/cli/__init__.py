"""The command line. Each verb is a module, and the signature of its function defines its
options.
"""
