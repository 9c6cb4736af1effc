"""`lexveil explore` in a real browser: what is typed changes what is shown, by keys; nothing leaves
the loopback."""

import os
import signal
import subprocess
import sys
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
def home(tmp_path_factory):
    """Home folder of a user without a project."""
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def address(home):
    rows = home / "rows.csv"
    rows.write_text(f'text\n"{PRIVATE}"\n')
    command = [sys.executable, "-m", "lexveil.faces.cli", "explore", rows.name]
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
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, address):
    """The page, just opened, with the public text that it begins with."""
    browser.open("about:blank")
    browser.events.clear()
    browser.open(address)
    until(lambda: "Daniela" in browser.text("#tokens"))
    return browser


def write(page, text, seen):
    """Type a text, and wait until a word of it is among the tokens."""
    focus(page, "#text")
    page.ask("document.activeElement.select()")
    page.call("Input.insertText", text=text)
    until(lambda: seen in page.text("#tokens") and "Daniela" not in page.text("#tokens"))


def focus(page, selector):
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.ask(f"document.activeElement.matches({selector!r})"):
            return
        page.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def test_keys_alone_move_the_slider_of_epsilon(page):
    page.fill("#strategy", "S3")
    focus(page, ".slider[data-for=epsilon]")
    page.press("ArrowRight")
    until(lambda: "--strategy S3 --epsilon 5.66" in page.text("#command"))
    assert page.ask("document.querySelector('#epsilon').value") == "5.66"
    assert page.text(".figures dd").startswith("11.3")
    assert "rows.csv" in page.text("#command")


@pytest.fixture
def token(page):
    """The page of a private text, with what one of its tokens becomes, opened by keys alone."""
    write(page, PRIVATE, "zanzibarsecret")
    focus(page, "#tokens button")
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("Enter")
    until(lambda: "What a reader would guess" in page.text("#token"))
    asked = {"/api/expected", "/api/guesses"}
    until(lambda: asked <= {urlsplit(url).path for url in page.requested()})
    return page


def test_keys_alone_lead_to_what_a_token_becomes(token):
    assert "burned" in token.text("#token h3")
    assert token.ask("document.activeElement.textContent").startswith("burned")
    assert token.ask("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_nothing_leaves_the_loopback(token, address):
    here = urlsplit(address).netloc
    assert here.startswith("127.0.0.1:")
    assert {urlsplit(url).netloc for url in token.requested()} == {here}


def test_the_page_has_no_fault(token):
    faults = {"Log.entryAdded", "Runtime.exceptionThrown"}
    assert not [event for event in token.events if event["method"] in faults]


@pytest.mark.usefixtures("token")
def test_no_text_and_no_ledger_is_kept(home):
    files = [file for file in home.rglob("*") if file.is_file() and file.name != "rows.csv"]
    assert not [file for file in files if b"zanzibarsecret" in file.read_bytes()]
    assert not list(home.rglob("*ledger*"))


def test_the_browser_stores_no_text(token):
    """htmx keeps the address of the page, for the tab."""
    stored = token.ask(
        "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"
    )
    assert stored.startswith("{}{")
    assert "zanzibar" not in stored


def test_the_accessibility_tree_names_controls_tokens_status_and_headings(page):
    """The test reads the tree that a browser gives to a screen reader, with all details open."""
    write(page, PRIVATE, "zanzibarsecret")
    page.fill("#strategy", "S3")
    until(lambda: "--strategy S3" in page.text("#command"))
    page.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.call("Accessibility.enable")
    nodes = [
        node for node in page.call("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]
    ]
    names = {}
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
