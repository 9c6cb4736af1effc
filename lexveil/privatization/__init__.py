"""The heart, in floors that import downwards only: looking, adapters, release, engine.

``settings`` completes a request by params.yaml and a model. Each floor says in its own docstring
what others call.
"""
