"""A release of texts: ``run`` takes a source to a sink, in floors that import downwards only.

The floors are ``inbox``, ``distributed``, ``looking``, ``adapters``, ``run``, ``record``,
``charge``, ``engine``, ``ledger``. ``settings`` completes a request from a project and a model. The
docstring of each floor names the functions that others call.
"""
