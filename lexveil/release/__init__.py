"""Privatization of texts, in layers that import downwards only: looking, adapters, release, engine.

``settings`` completes a request from a project and a model. The docstring of each layer names the
functions that others call.
"""
