"""A service in this process, by the toy model, with the ledger of a user outside of any project."""

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexveil.service.app import create_app
from lexveil.service.rewriting import Rewriter
from lexveil.service.server import Quiet
from lexveil.service.terms import Terms
from lexveil.service.warm_model import WarmModel

# A mechanism that needs no lists of near words, so that a worker is ready at once.
SETTINGS = {"mechanism": "tem", "strategy": "S3", "epsilon": 20.0}

Make = Callable[..., TestClient]


@pytest.fixture
def service(outside: Path) -> Make:
    """Makes the service of one worker; ``terms`` beside those of the tests."""

    def make(**terms: Any) -> TestClient:
        given = {"model": "toy", "fixed": SETTINGS, "allowed_host": ("testserver",)} | terms
        return TestClient(create_app(Rewriter(Terms(**given), WarmModel.find("toy"))))

    return make


@pytest.fixture
def ledger(outside: Path) -> Path:
    """The folder of the ledger that the service charges."""
    return outside.parent / "home" / "ledger"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The lines that the service logs, as its formatter shows them."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.name.startswith("httpx"):  # the client of the tests
                lines.append(self.format(record))

    handler, logger = Kept(), logging.getLogger("lexveil.service")
    handler.setFormatter(Quiet("%(levelname)s %(message)s"))
    below = logging.root.manager.disable
    logging.disable(logging.NOTSET)  # whatever other tests of this process have set up
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("level", logging.INFO), ("disabled", False), ("propagate", False)):
            patch.setattr(logger, name, value)
        patch.setattr(logger, "handlers", [handler])
        patch.setattr(logging.root, "handlers", [*logging.root.handlers, handler])
        logger._cache.clear()
        yield lines
    logging.disable(below)


def charges(ledger: Path) -> list[tuple[str, str, int, int]]:
    """Of each release its id, its state, how many subjects it charged, and nano-epsilon."""
    with contextlib.closing(sqlite3.connect(ledger / "ledger.sqlite")) as con:
        return con.execute(
            "select id, state, count(subject), coalesce(sum(nano), 0) from releases "
            "left join spends on spends.release = releases.number group by number order by number"
        ).fetchall()
