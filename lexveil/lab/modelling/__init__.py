"""Construction of packaged models: selection of tokens from a corpus, the model's metadata card,
and word scales (scores that rewriting should preserve).
"""
