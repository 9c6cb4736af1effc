"""Construction of packaged models: selection of tokens from a corpus, the model card, and scales
for purposes.
"""
