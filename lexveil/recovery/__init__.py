"""What a best-informed reader gets back from an output, and which epsilon lets them get back how much.

The reader knows the mechanism, the space, the epsilon of each token and how frequent each word is, and decodes.
"""
