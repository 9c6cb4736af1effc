"""Adversaries who see an output and know the mechanism ("readers"). The modules compute which
source words they recover, and which source texts they identify.

A reader knows the mechanism, its vocabulary, the epsilon of each token and the public frequency of
each word, and decodes the output by Bayes' rule. Expected recovery is the share of words that such
a reader recovers, and calibration finds the epsilon for a given share.
"""
