"""Sentences of a language model: what it is asked, and which of its sentences are left out."""

import gzip
import json

import pytest

from benchmarks.written_bank.choosing import chosen, has_name
from benchmarks.written_bank.prompts import SHARED, kinds, prompt
from lexveil.lab.data.sentence_choice import Choice

ANY_SENTENCE = Choice(size=10**9)
GOOD = "The soup was still warm when the waiter came."
BAD = {
    "may name somebody": "We met them at the old Garden again last week.",
    "about a grave subject": "My old dog died in the winter after a long life.",
    "part of a sentence": "The good parts are: the music and the light.",
    "repeats words": "It is too loud when it is too dark in here.",
    "has two clauses": "The tea was cold and we had to wait for the cake.",
    "copied from an example or a public text": "We often walk along the old river in the rain.",
}


def test_a_prompt_follows_from_seed_and_number():
    among = kinds()
    assert prompt(77, 1, among) == prompt(77, 1, among) != prompt(77, 2, among)


def test_texts_of_a_kind_share_their_examples_for_a_while():
    among = kinds()
    block = {prompt(n, 1, among).examples for n in range(0, len(among) * SHARED, len(among))}
    assert len(block) == 1
    assert prompt(len(among) * SHARED, 1, among).examples not in block


def choose(folder, *lines, size=100):
    written = folder / "written.jsonl"
    rows = [json.dumps({"text": text, "given": 0, "nats": [nats]}) for text, nats in lines]
    written.write_text("\n".join(rows) + "\n")
    public = folder / "open.json.gz"
    with gzip.open(public, "wt") as out:
        out.write(
            json.dumps({"text": f"Then: {BAD['copied from an example or a public text']} So."})
            + "\n"
        )
    found = chosen(written, [public], ANY_SENTENCE, size, -2.0)
    return found.table.column("text").to_pylist(), found.left_out


@pytest.mark.parametrize("reason", BAD)
def test_a_sentence_is_left_out_for_a_reason(reason, tmp_path):
    kept, left_out = choose(tmp_path, (GOOD, -1.0), (BAD[reason], -1.0))
    assert kept == [GOOD] and left_out[reason] == 1


def test_the_likeliest_are_kept(tmp_path):
    lines = [(GOOD, -1.5), ("It came on time.", -1.0), ("The tea was cold.", -3.0)]
    assert choose(tmp_path, *lines)[0] == [lines[1][0], GOOD]
    assert choose(tmp_path, *lines, size=1)[0] == [lines[1][0]]


def test_a_sentence_that_was_given_is_no_sentence_of_the_model(tmp_path):
    written = tmp_path / "written.jsonl"
    line = {"text": f"I love this place. {GOOD}", "given": len("I love this place"), "nats": [-1.0]}
    written.write_text(json.dumps(line) + "\n")
    assert chosen(written, [], ANY_SENTENCE, 100, -2.0).table.column("text").to_pylist() == [GOOD]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Emily liked it.", True),
        ("We flew to Rome.", True),
        ("On Monday I’m at home.", False),
        ("Will it work?", False),
    ],
)
def test_names_are_told_by_capitals(text, expected):
    assert has_name(text, frozenset({"emily"})) is expected
