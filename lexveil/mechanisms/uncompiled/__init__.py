"""What ``kernels`` does, for a few tokens, by NumPy: the same draws, without loading numba. See ``lexveil.compiled``."""
