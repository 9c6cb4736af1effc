"""A release of texts. ``run`` takes a source to a sink.

The parts of this package, each of which imports only the later ones: ``inbox``, ``distributed``,
``looking``, ``adapters``, ``run``, ``record``, ``charge``, ``engine``, ``ledger``. ``settings``
completes a request from a project and a model. The docstring of each part names the functions that
other parts call.
"""
