"""`lexveil explore` in a real browser: what is typed changes what is shown, by keys; nothing leaves
the loopback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from asking import until
from chromium import BROWSER, Chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; .ci/run installs it"),
]
ROOT = Path(__file__).parents[2]
PRIVATE = "The zanzibarsecret burned in New York."
CONTROLS = (
    "button textbox spinbutton slider combobox radio checkbox link DisclosureTriangle".split()
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home folder of a user without a project."""
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    rows = home / "rows.csv"
    rows.write_text(f'text\n"{PRIVATE}"\n')
    command = [sys.executable, "-m", "lexveil.cli", "explore", rows.name]
    env = {
        "HOME": str(home),
        "LEXVEIL_HOME": str(home / "data"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
    }
    with (home / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=home,
            env=env,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line, (home / "said").read_text()
            yield line
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # and what compiles code for it meanwhile
            process.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Chromium, address: str) -> Chromium:
    """The page, just opened, with the public text that it begins with."""
    browser.open("about:blank")
    browser.events.clear()
    browser.open(address)
    until(lambda: "Daniela" in browser.text("#tokens"))
    return browser


def write(page: Chromium, text: str, seen: str) -> None:
    """Type a text, and wait until a word of it is among the tokens."""
    focus(page, "#text")
    page.ask("document.activeElement.select()")
    page.call("Input.insertText", text=text)
    until(lambda: seen in page.text("#tokens") and "Daniela" not in page.text("#tokens"))


def focus(page: Chromium, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.ask(f"document.activeElement.matches({selector!r})"):
            return
        page.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def test_keys_alone_lead_to_what_a_token_becomes_and_nothing_leaves_the_loopback(
    page: Chromium, address: str, home: Path
) -> None:
    write(page, PRIVATE, "zanzibarsecret")
    page.fill("#strategy", "S3")
    focus(page, ".slider[data-for=epsilon]")
    page.press("ArrowRight")
    until(lambda: "--strategy S3 --epsilon 5.66" in page.text("#command"))
    assert page.ask("document.querySelector('#epsilon').value") == "5.66"
    assert page.text(".figures dd").startswith("11.3") and "rows.csv" in page.text("#command")
    focus(page, "#tokens button")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.ask("document.activeElement.textContent").startswith("burned")
    page.press("Enter")
    until(
        lambda: (
            "burned" in page.text("#token h3")
            and "What a reader would guess" in page.text("#token")
        )
    )
    until(
        lambda: (
            {"/api/expected", "/api/guesses"} <= {urlsplit(url).path for url in page.requested()}
        )
    )
    assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"

    here = urlsplit(address).netloc
    assert here.startswith("127.0.0.1:") and {urlsplit(url).netloc for url in page.requested()} == {
        here
    }
    assert not [
        event
        for event in page.events
        if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
    ]
    kept = [file for file in home.rglob("*") if file.is_file() and file.name != "rows.csv"]
    assert not [
        file
        for file in kept
        if b"zanzibarsecret" in file.read_bytes() or "ledger" in str(file.relative_to(home))
    ]
    stored = page.ask(
        "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"
    )
    # htmx keeps the address of the page, for the tab
    assert stored.startswith("{}{") and "zanzibar" not in stored


def test_the_accessibility_tree_names_controls_tokens_status_and_headings(page: Chromium) -> None:
    """The test reads the tree that a browser gives to a screen reader, with all details open."""
    write(page, PRIVATE, "zanzibarsecret")
    page.fill("#strategy", "S3")
    until(lambda: "--strategy S3" in page.text("#command"))
    page.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.call("Accessibility.enable")
    nodes = [
        node for node in page.call("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]
    ]
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(node["role"]["value"], []).append(
            node.get("name", {}).get("value", "").strip()
        )
    controls = [name for role in CONTROLS for name in names.get(role, [])]
    assert all(controls)
    shown = page.ask(
        "[...document.querySelectorAll('input, select, textarea, button, a, summary')].length"
    )
    assert len(controls) == shown  # none is hidden from readers, or of no role
    # The browser puts a space before what only readers get.
    buttons = {name.replace(" ,", ",") for name in names["button"]}
    assert {"zanzibarsecret, random", "New York, perturbed, collocation", "., kept"} <= buttons
    assert len(names["status"]) == 1 and page.text("#status").startswith("3 draws of ")
    assert {"main", "banner", "contentinfo", "heading"} <= set(names)
