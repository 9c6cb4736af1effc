"""An HTTP server on loopback that notes what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Endpoint:
    """Its address, and the path, key and body of each request."""

    address: str
    requests: list[tuple[str, str | None, Any]] = field(default_factory=list)


@contextmanager
def endpoint(answer: int = 200) -> Iterator[Endpoint]:
    """One that answers every request by a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.requests.append((self.path, self.headers.get("Authorization"), json.loads(body)))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Endpoint(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()
