"""Rewriting and release of a user's texts, from the input to the published output.

The parts of this package, each of which imports only the later ones: ``inbox``, ``distributed``,
``looking``, ``adapters``, ``run``, ``record``, ``charge``, ``engine``, ``ledger``. ``settings``
completes a request from a project and a model. The docstring of each part names the functions that
other parts call.
"""
