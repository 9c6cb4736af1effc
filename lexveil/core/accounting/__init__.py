"""Privacy accounting: how a document's budget is divided, which tokens are perturbed, what bound
is proven, and the privacy record that states it.
"""
