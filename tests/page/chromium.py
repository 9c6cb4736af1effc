"""Chromium by its DevTools protocol: opens a page, presses keys, asks for values, keeps the log of
the network."""

import itertools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import httpx
from asking import until
from websockets.sync.client import connect

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-port=0"
).split()
PATIENCE = 1800  # seconds until a test gives up waiting; nothing is measured by it
KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39}


class Chromium:
    """A page of a browser that has a profile of its own."""

    def __init__(self) -> None:
        assert BROWSER is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [BROWSER, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port_file = Path(self._profile.name, "DevToolsActivePort")
        port = until(lambda: port_file.exists() and port_file.read_text().split("\n")[0])
        pages = until(
            lambda: httpx.get(
                f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE, trust_env=False
            ).json()
        )
        address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        self._socket = connect(address, max_size=None, proxy=None, ping_interval=None)
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol; events that come meanwhile are kept."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def open(self, address: str) -> None:
        """Open an address, and wait until it is read."""
        self.call("Page.navigate", url=address)
        until(lambda: self.ask("document.readyState") == "complete")

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the visible text of an element; empty if there is none."""
        return str(self.ask(f"document.querySelector({selector!r})?.innerText ?? ''"))

    def fill(self, selector: str, value: str) -> None:
        """Give a field a value, as its user would at once."""
        done = "field.dispatchEvent(new Event('input', {bubbles: true}))"
        self.ask(
            f"{{ const field = document.querySelector({selector!r}); field.value = {value!r}; "
            f"{done} }}"
        )

    def press(self, key: str) -> None:
        """Press a key."""
        event = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else "", **event
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def requested(self) -> list[str]:
        """Every address that the page has asked for, by the network's log."""
        self.ask("0")  # events come with answers
        asked = [
            event["params"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [event["request"]["url"] for event in asked]
