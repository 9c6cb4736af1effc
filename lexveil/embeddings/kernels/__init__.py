"""Compiled kernels of the embeddings, loaded on first use: see ``lexveil.compiled``."""
