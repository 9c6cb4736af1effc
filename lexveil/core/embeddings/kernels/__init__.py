"""Compiled kernels of the embeddings, loaded on first use."""
