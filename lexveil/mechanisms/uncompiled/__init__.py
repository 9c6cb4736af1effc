"""What ``kernels`` does, for a few tokens, by NumPy: the same draws without numba. See ``lexveil.compiled``."""
