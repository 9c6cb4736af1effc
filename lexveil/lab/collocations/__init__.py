"""Collocations: sampling of the corpus, counting and scoring of n-grams, segmentation of texts, and
look-up of collocations.
"""
