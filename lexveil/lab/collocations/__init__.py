"""Collocations: sampling and counting of the corpus, scoring of n-grams, look-up."""
