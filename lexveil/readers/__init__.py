"""Expected recovery by a Bayes-optimal adversary, and calibration of epsilon to a target share.

The adversary knows the mechanism, the space, the epsilon of each token and the frequency of each
word, and decodes the output.
"""
