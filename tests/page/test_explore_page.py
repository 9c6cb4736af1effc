"""`lexveil explore` in a real browser: what is typed changes what is shown, by keys; nothing leaves the loopback."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from accessibility import CONTROLS, low_contrast, names_by_role, tree
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
    assert "--protection balanced --mechanism tem --strategy S1" in page.text("#command")
    page.fill("#strategy", "S3")
    until(lambda: "--strategy S3" in page.text("#command"))
    fates = page.ask("[...document.querySelectorAll('#tokens button')].map(one => one.textContent)")
    assert "zanzibarsecret, random" in fates and "New York, perturbed, collocation" in fates
    assert "nobody" not in page.text("#results .box") and "no budget accounts for that" in page.text("#results .box")


def test_a_slider_changes_the_epsilon(page: Chromium) -> None:
    focus(page, ".slider[data-for=epsilon]")
    page.press("ArrowRight")
    until(lambda: "--epsilon 5.66" in page.text("#command"))
    assert page.ask("document.querySelector('#epsilon').value") == "5.66"
    assert page.text(".figures dd").startswith("11.3") and "rows.csv" in page.text("#command")


def test_keys_alone_lead_to_what_a_token_becomes(page: Chromium) -> None:
    focus(page, "#tokens button")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.ask("document.activeElement.textContent").startswith("burned")
    page.press("Enter")
    until(lambda: "burned" in page.text("#token h3"))
    detail = page.text("#token")
    assert "Nearest neighbours" in detail and "of 500 draws" in detail and "What a reader would guess" in detail
    until(lambda: page.ask("true") and any("/api/guesses" in url for url in page.requested()))
    assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.press("Tab")  # all tokens are one stop
    assert not page.ask("document.activeElement.matches('#tokens button')")


def test_a_row_of_the_file_is_opened_with_a_warning(page: Chromium) -> None:
    page.fill("#sample", "row:0", "change")
    until(lambda: "This row is private" in page.text("#results"))


def test_an_error_takes_the_place_of_the_draws_and_is_said_once(page: Chromium) -> None:
    """Also of a value that the browser would not send by itself."""
    page.fill("#epsilon", "-1")
    until(lambda: "epsilon must lie between" in page.text("#results > [role=alert]"))
    assert not page.text("#tokens") and page.ask("document.querySelectorAll('[role=alert]:not([hidden])').length") == 1
    page.fill("#epsilon", "5")
    until(lambda: page.text("#tokens"))


def test_average_words_change_the_budget_and_the_command(page: Chromium) -> None:
    default = page.ask("document.querySelector('#average_words').placeholder")
    assert float(default) > 0 and f"ε 5 × {default} words" in page.text("#figures").replace(",", "")
    assert page.ask("document.querySelector('#max_token_epsilon').placeholder") == "10"
    page.fill("#average_words", "12")
    page.fill("#max_token_epsilon", "3")
    until(lambda: "--average-words 12 --max-token-epsilon 3" in page.text("#command"))
    assert "ε 5 × 12 words" in page.text("#figures") and "at most 3" in page.text("#figures")
    page.fill("#average_words", "")
    page.fill("#max_token_epsilon", "")
    until(lambda: "--average-words" not in page.text("#command"))


def test_what_a_release_refuses_is_said_beside_the_draws_or_in_their_place(page: Chromium) -> None:
    page.fill("#mechanism", "truncated_gumbel")
    page.fill("#epsilon", "5000")
    until(lambda: "no guarantee can be given" in page.text("#release"))
    assert "As a release this would be refused" in page.text("#release") and page.text("#tokens")
    assert "as a release this would be refused" in page.ask("document.querySelector('#status').textContent")
    page.fill("#mechanism", "tem")
    page.fill("#epsilon", "5")
    until(lambda: page.text("#tokens") and not page.text("#release"))
    text = page.ask("document.querySelector('#text').value")
    page.fill("#text", "这家餐厅的服务非常好，下次还会再来。")
    until(lambda: "in Chinese script without spaces between words" in page.text("#results > [role=alert]"))
    assert not page.text("#tokens") and "这" not in page.text("#results")
    page.fill("#text", text)
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


def test_the_accessibility_tree_names_controls_tokens_status_and_headings(page: Chromium) -> None:
    """As a screen reader gets it from the browser, with what can be opened open."""
    page.resize(1280)
    page.fill("#text", PRIVATE)
    until(lambda: "zanzibarsecret" in page.text("#tokens") and len(page.text("#tokens")) < 200)
    page.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.ask("document.querySelector('#t1').click()")
    until(lambda: page.text("#token h3") and "computing" not in page.text("#token"))
    nodes = tree(page)
    names = names_by_role(nodes)
    unnamed = [role for role in CONTROLS for name in names.get(role, []) if not name]
    assert not unnamed
    shown = page.ask("[...document.querySelectorAll('input, select, textarea, button, a, summary')].length")
    assert sum(len(names.get(role, [])) for role in CONTROLS) == shown  # none is hidden from readers, or of no role
    # The browser puts a space before what only readers get.
    buttons = [name.replace(" ,", ",") for name in names["button"]]
    tokens = [name for name in buttons if re.search(r", (perturbed|random|kept|dropped)(, collocation)?$", name)]
    assert len(tokens) == page.ask("document.querySelectorAll('#tokens button').length") > 3
    assert {"zanzibarsecret, random", "New York, perturbed, collocation", "., kept"} <= set(tokens)
    assert "Tokens of the text" in names["group"]
    (status,) = [node for node in nodes if node.role == "status"]
    assert status.properties["live"] == "polite" and page.text("#status").startswith("3 draws of ")
    levels = [node.properties["level"] for node in nodes if node.role == "heading"]
    assert levels[0] == 1 and levels.count(1) == 1 and len(levels) > 8
    assert all(next_one <= level + 1 for level, next_one in pairwise(levels))
    assert {"main", "banner", "contentinfo"} <= set(names)


def test_every_stop_of_the_tab_key_is_seen(page: Chromium, address: str) -> None:
    """From the first to the last, by the keyboard alone; a token is reached, and opens."""
    page.open(address)
    until(lambda: page.text("#tokens"))
    outlined = """(() => {
        const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
        const isDrawn = style.outlineStyle !== "none" && style.outlineColor !== "rgba(0, 0, 0, 0)";
        const isThere = box.width && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
        return [one.id || one.className || one.tagName, isDrawn && parseFloat(style.outlineWidth) >= 2, isThere];
    })()"""
    stops = []
    for _ in range(60):
        page.press("Tab")
        if page.ask("document.activeElement === document.body"):
            break
        stops.append(page.ask(outlined))
    names = [name for name, *_ in stops]
    assert all(is_outlined and is_there for _, is_outlined, is_there in stops), stops
    wanted = ["skip", "sample", "text", "mechanism", "epsilon", "average_words", "seed", "again", "command"]
    assert [name for name in names if name in wanted] == wanted
    assert sum("token" in name for name in names) == 1  # all tokens are one stop
    focus(page, "#tokens button")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.ask(outlined)[1:] == [True, True]
    word = page.ask("document.activeElement.firstChild.textContent")
    page.press("Enter")
    until(lambda: word in page.text("#token h3") and "computing" not in page.text("#token"))
    assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page: Chromium, scheme: str) -> None:
    """By the styles that the browser computed, of every text that is there: at least 4.5 to 1."""
    page.resize(1280, scheme=scheme)
    page.fill("#mechanism", "truncated_gumbel")
    page.fill("#epsilon", "5000")
    page.fill("#text", f"{PRIVATE} Nothing is {scheme}.")
    until(lambda: "would be refused" in page.text("#release") and scheme in page.text("#tokens"))
    page.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.ask("document.querySelector('#t1').click()")
    until(lambda: page.text("#token h3") and "computing" not in page.text("#token"))
    texts, low = low_contrast(page)
    assert texts > 100 and not low, low
    page.fill("#epsilon", "-1")
    until(lambda: "epsilon must lie between" in page.text("#results > [role=alert]"))
    assert not low_contrast(page)[1]
    # It can say no.
    page.ask("document.querySelector('header p').style.color = getComputedStyle(document.body).backgroundColor")
    assert [words for words, _ in low_contrast(page)[1]] and page.ask(
        "document.querySelector('header p').style = ''"
    ) == ""


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
