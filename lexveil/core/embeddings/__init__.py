"""Embeddings of words and collocations: training, exact nearest-neighbour search, word orders and
evaluation.
"""
