"""Readers of an output who know the method: what they recover, and which text they find again.

The recovery is expected of a Bayes-optimal adversary, and epsilon is calibrated to a target share.

The adversary knows the mechanism, the space, the epsilon of each token and the frequency of each
word, and decodes the output.
"""
