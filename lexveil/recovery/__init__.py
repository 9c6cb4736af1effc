"""What a Bayes-optimal adversary gets back from an output, and which epsilon gives back a given
share.

The adversary knows the mechanism, the space, the epsilon of each token and how frequent each word
is, and decodes.
"""
