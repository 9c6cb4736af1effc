"""Every command, call and setting of docs and examples: those that can run here run, and none that
releases keeps most words or leaves none."""

import csv
import json

import pytest
from documented import FILES, ROOT, Spends, calls, commands, sections, spending

from lexveil import Model
from lexveil.faces.service.page.form import SAMPLES
from lexveil.io.request import Request
from lexveil.release.looking.inspect import inspect_texts
from lexveil.release.preconditions import check

LEAST_LEFT = 0.005  # of the perturbed tokens: less is noise
# A command with one of these needs what is not here, or minutes of figures.
NEEDS = {
    "--model": "a model of one's own",
    "--detector": "another library",
    "--bank": "a bank of one's own",
    "--sql": "a database",
    "--share-list": "a list of one's own",
    "--recovery": "minutes",
    "--preview": "a terminal",
    "--purpose": "minutes, but for sentiment",
}
ROWS = [
    {
        "id": str(number),
        "customer": f"c{number}",
        "title": "About the soup",
        "body": text,
        "text": text,
    }
    for number, text in enumerate(SAMPLES.values(), start=1)
]


def runnable():
    """The commands that rewrite or inspect a local table, each once."""
    found = {
        tuple(words)
        for file in FILES
        for words in commands(file)
        if words[0] in ("privatize", "inspect")
        and words[1].endswith((".csv", ".jsonl"))
        and "://" not in " ".join(words)
        and not NEEDS.keys() & set(words)
    }
    return sorted(found)


@pytest.mark.parametrize("words", runnable(), ids=" ".join)
def test_a_documented_command_runs(words, outside, cli):
    """The command ends with success and prints no caution."""
    file = outside / words[1]
    columns = list(ROWS[0])
    if "--text-column" not in words:  # then there is one column that can be the texts
        columns = [name for name in columns if name not in ("title", "body")]
    rows = [{name: row[name] for name in columns} for row in ROWS]
    if file.suffix == ".csv":
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, columns)
            writer.writeheader()
            writer.writerows(rows)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = cli(*words)
    assert "CAUTION: hardly" not in said.out and "level light" not in said.out
    assert words[0] == "inspect" or (outside / words[words.index("-o") + 1]).is_file()


@pytest.mark.parametrize("asked", spending(), ids=lambda asked: asked.file)
@pytest.mark.usefixtures("outside")
def test_a_documented_epsilon_is_no_more_than_light_and_leaves_something(asked):
    """The model that ships judges the epsilon on public texts."""
    seen = judged(asked)
    assert seen.budget.beyond_light is None
    assert seen.tried.documents is None or seen.tried.documents.caution() is None
    assert seen.tried.share_changed is not None and 1 - seen.tried.share_changed > LEAST_LEFT


@pytest.mark.parametrize("wrong", ["10", "0.1"])
@pytest.mark.usefixtures("outside")
def test_the_judgement_can_fail(wrong):
    """The settings that the deploy files had, and a budget that leaves nothing."""
    how = (("epsilon", wrong), ("mechanism", "tem"), ("strategy", "S3"))
    seen = judged(Spends("", how))
    left = 1 - (seen.tried.share_changed or 0.0)
    assert (seen.budget.beyond_light is not None) == (wrong == "10")
    assert (left < LEAST_LEFT) == (wrong == "0.1")


def judged(asked):
    """Return the inspection of public texts with these settings, as `lexveil inspect` makes it."""
    settings = {"mechanism": "tem", "strategy": "S3"} | dict(asked.options)  # those of the inbox
    checked = check(Request.of({**settings, "seed": "7"}, written=True), Model.load(name="en"))
    return inspect_texts(texts_of(int(settings.get("average_words", 40))), checked.engine)


def texts_of(n_words):
    """Public texts of about as many words as are assumed of them."""
    words = [text.split() for text in SAMPLES.values()]
    starts = [(text, start) for text in words for start in range(0, len(text) - n_words, n_words)]
    return [" ".join(text[start : start + n_words]) for text, start in starts] * 8


def test_the_search_finds_what_there_is():
    """If the pages were written in another form, the search would find nothing and the tests above
    would pass."""
    names = {str(file.relative_to(ROOT)) for file in FILES}
    assert {"README.md", "examples/deploy/compose.yaml", "docs/how-to/python.md"} <= names
    assert len(runnable()) > 8 and len(spending()) > 2
    assert sum(len(list(commands(file))) for file in FILES) > 40
    assert sum(len(list(calls(file))) for file in FILES) > 5
    assert any(list(sections(file)) for file in FILES)
