"""Numbers for Prometheus: no text, no subject, no path that a client wrote."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # environment variable of the client library: where workers add up
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of a worker, which the client library adds up over all of them."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._registry = own
        self.requests = Counter("lexveil_requests", "Requests by route and status", ["route", "status"], registry=own)
        self.seconds = Histogram(
            "lexveil_request_seconds", "Seconds to the answer", ["route"], buckets=SECONDS, registry=own
        )
        self.texts = Counter("lexveil_texts", "Texts rewritten and handed out", registry=own)
        self.withheld = Counter("lexveil_texts_withheld", "Texts withheld: budget exhausted", registry=own)
        self.epsilon = Counter("lexveil_epsilon_charged", "Epsilon charged for answers", registry=own)
        self.wasted = Counter("lexveil_charged_without_answer", "Requests charged and not answered", registry=own)

    def exposition(self) -> bytes:
        """All of them in Prometheus' text format."""
        registry = self._registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
