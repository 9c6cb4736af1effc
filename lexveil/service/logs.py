"""Logs without texts: exceptions are shown by where they were raised, and requests by their route."""

from __future__ import annotations

import logging
from typing import Any

from lexveil.runtime.crash import crash_report


class Quiet(logging.Formatter):
    """Shows what happened and where, never the message of an exception, which may quote a text."""

    def formatException(self, ei: Any) -> str:
        """The traceback without messages."""
        return crash_report(ei[1])


def log_config() -> dict[str, Any]:
    """For ``logging.config``: all on standard error, with the time in UTC."""
    logger = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "quiet": {"()": Quiet, "format": "%(asctime)s %(process)d %(levelname)s %(message)s", "datefmt": "%FT%T%z"}
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "quiet", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"uvicorn": logger, "lexveil.service": logger},
    }
