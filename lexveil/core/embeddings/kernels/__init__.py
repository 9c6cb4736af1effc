"""Compiled kernels of the embeddings; they are compiled and loaded on first use."""
