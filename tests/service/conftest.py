"""A service in this process, by the toy model, with the ledger of a user outside of any project."""

import contextlib
import logging
import sqlite3

import pytest
from starlette.testclient import TestClient

from lexveil.faces.service.app import create_app
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.server import Quiet
from lexveil.faces.service.terms import Terms
from lexveil.faces.service.warm_model import WarmModel
from lexveil.release.ledger.ledger import Ledger

# A mechanism that needs no lists of near words, so that a worker is ready at once.
SETTINGS = {"mechanism": "tem", "strategy": "S3", "epsilon": 20.0}


@pytest.fixture
def service(outside):
    """Makes the service of one worker, and the ledger, as the start of a service does; ``terms``
    beside those of the tests.
    """

    def make(**terms):
        home = outside.parent / "home"
        Ledger.open(home / "ledger", anchor=home / "ledger-anchor.json").close()
        given = {"model": "toy", "fixed": SETTINGS, "allowed_host": ("testserver",)} | terms
        return TestClient(create_app(TextRewriter(Terms(**given), WarmModel.find("toy"))))

    return make


@pytest.fixture
def ledger(outside):
    """The folder of the ledger that the service charges."""
    return outside.parent / "home" / "ledger"


@pytest.fixture
def logged(caplog, monkeypatch):
    """Log of the service in the form of its formatter, whatever logging other tests of this process
    have set up.
    """
    logger = logging.getLogger("lexveil.faces.service")
    for name, value in (("disabled", False), ("propagate", False), ("handlers", [caplog.handler])):
        monkeypatch.setattr(logger, name, value)
    monkeypatch.setattr(caplog.handler, "formatter", Quiet("%(levelname)s %(message)s"))
    with caplog.at_level(logging.INFO, logger.name):
        yield caplog


def charges(ledger):
    """Return the id, the state, the number of charged subjects and the nano-epsilon of each
    release.
    """
    with contextlib.closing(sqlite3.connect(ledger / "ledger.sqlite")) as con:
        return con.execute(
            "select id, state, count(subject), coalesce(sum(nano), 0) from releases "
            "left join spends on spends.release = releases.number group by number order by number"
        ).fetchall()
