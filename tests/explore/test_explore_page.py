"""`lexveil explore` in a real browser: what is typed changes what is shown, by keys; nothing leaves the loopback."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import BROWSER, Chromium, until

# One page of one browser, told in order: each start of either costs seconds.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.random_order(disabled=True),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; .ci/run installs it"),
]
ROOT = Path(__file__).parents[2]
PRIVATE = "The zanzibarsecret burned in New York."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a user without a project."""
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    rows = home / "rows.csv"
    rows.write_text(f'text\n"{PRIVATE}"\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "lexveil.cli", "explore", rows.name],
        cwd=home,
        env={"HOME": str(home), "LEXVEIL_HOME": str(home / "data"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=(home / "said").open("wb"),
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, (home / "said").read_text()
    yield line
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Chromium]:
    with Chromium() as browser:
        browser.resize(1280)
        browser.open(address)
        until(lambda: browser.text("#tokens"))
        yield browser


def focus(page: Chromium, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.ask(f"document.activeElement.matches({selector!r})"):
            return
        page.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def test_it_opens_with_a_public_text_and_says_what_draws_are(page: Chromium) -> None:
    assert "Draws here are experiments" in page.text("header") and "no ledger is charged" in page.text("header")
    assert "public sample" in page.text("#results .box") and "Daniela" in page.text("#tokens")
    assert page.ask("document.querySelectorAll('.draws article').length") == 3


def test_what_is_typed_changes_what_is_shown(page: Chromium) -> None:
    focus(page, "#text")
    page.ask("document.activeElement.select()")
    page.type(PRIVATE)
    until(lambda: "zanzibarsecret" in page.text("#tokens") and "Daniela" not in page.text("#tokens"))
    fates = page.ask("[...document.querySelectorAll('#tokens button')].map(one => one.textContent)")
    assert "zanzibarsecret, random" in fates and "New York, perturbed, collocation" in fates
    assert "nobody" not in page.text("#results .box") and "no budget accounts for that" in page.text("#results .box")


def test_a_slider_changes_the_epsilon(page: Chromium) -> None:
    before = page.text(".figures dd")
    focus(page, ".slider[data-for=epsilon]")
    page.press("ArrowRight")
    until(lambda: page.text(".figures dd") not in ("", before))
    assert page.ask("document.querySelector('#epsilon').value") == "5.66"
    assert "--epsilon 5.66" in page.text("#command") and "rows.csv" in page.text("#command")


def test_keys_alone_lead_to_what_a_token_becomes(page: Chromium) -> None:
    focus(page, "#tokens button")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.ask("document.activeElement.textContent").startswith("burned")
    page.press("Enter")
    until(lambda: "burned" in page.text("#token h3"))
    detail = page.text("#token")
    assert "Nearest neighbours" in detail and "of 500 draws" in detail and "What a reader would guess" in detail
    assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.press("Tab")  # all tokens are one stop
    assert not page.ask("document.activeElement.matches('#tokens button')")


def test_a_row_of_the_file_is_opened_with_a_warning(page: Chromium) -> None:
    page.fill("#sample", "row:0", "change")
    until(lambda: "This row is private" in page.text("#results"))


def test_an_error_says_what_to_do(page: Chromium) -> None:
    page.fill("#epsilon", "-1")
    until(lambda: "greater than 0" in page.text("#results [role=alert]"))
    page.fill("#epsilon", "5")
    until(lambda: page.text("#tokens"))


@pytest.mark.parametrize("width", [400, 1280])
def test_it_fits_narrow_and_wide_windows(page: Chromium, width: int) -> None:
    page.resize(width, scheme="dark")
    page.fill("#text", f"It was {width} times so. " * 200)
    until(lambda: f"{width}" in page.text("#tokens"))
    assert page.ask("innerWidth") == width
    assert page.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # What only screen readers find makes the page no longer than it looks.
    end = page.ask("document.querySelector('footer').getBoundingClientRect().bottom + scrollY")
    assert page.ask("document.documentElement.scrollHeight") <= max(900, end + 100)


def test_every_field_has_a_name_and_every_token_its_fate_in_words(page: Chromium) -> None:
    unnamed = "filter(one => !one.labels.length && !one.ariaLabel).length"
    assert page.ask(f"[...document.querySelectorAll('input, select, textarea')].{unnamed}") == 0
    assert page.ask(
        "[...document.querySelectorAll('#tokens button')]"
        ".every(one => /, (perturbed|random|kept|dropped)/.test(one.innerText))"
    )


def test_nothing_left_the_loopback_and_nothing_was_kept(page: Chromium, address: str, home: Path) -> None:
    asked = page.requested()
    here = urlsplit(address).netloc
    assert here.startswith("127.0.0.1:") and {urlsplit(url).netloc for url in asked if url != "about:blank"} == {here}
    assert {urlsplit(url).path for url in asked} >= {"/", "/api/draws", "/api/token", "/api/expected", "/api/guesses"}
    refused = "Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
    assert set(page.complaints()) <= {refused}
    kept = [file for file in home.rglob("*") if file.is_file() and file.name != "rows.csv"]
    assert not [file for file in kept if b"zanzibarsecret" in file.read_bytes()]
    assert not [file for file in kept if re.search("ledger", str(file.relative_to(home)))]
    stored = page.ask("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert stored.startswith("{}{") and "zanzibar" not in stored  # htmx keeps the address of the page, for the tab
