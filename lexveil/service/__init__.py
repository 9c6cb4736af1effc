"""An HTTP service that rewrites texts for programs; each request is charged before it is
answered.
"""
