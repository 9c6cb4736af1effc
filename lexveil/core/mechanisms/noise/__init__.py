"""Sources of randomness: streams that a known seed and a name determine, and the operating
system's entropy.
"""
