"""Embeddings of words and collocations: training, exact search, word orders, evaluation."""
