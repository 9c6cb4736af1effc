"""Tell two words of a private text apart by the budget of all others: B as the average length of
what is released.

Two data sets differ in one text of one token: a collocation of several words, or a single word.
Their structure is the same, so nothing but noise may tell them apart. The observer compares the
budget in the record, or the epsilon of any token, with what he computes for both.
"""

import json
from pathlib import Path
from typing import Any

from tests.attacks.attacker import lexveil, public_files, words_of, write_rows

EPSILON = 0.01
OTHERS = ["the government said", "fire services were there"]


def said(folder: Path, text: str) -> list[Any]:
    """The budget that is published with a release that holds a text."""
    folder.mkdir()
    source = write_rows(folder / "in.jsonl", [{"text": one} for one in [text, *OTHERS]])
    how = ["--mechanism", "tem", "--strategy", "S3", "--epsilon", EPSILON]
    code, _, err = lexveil("privatize", source, "-o", folder / "out.jsonl", *how)
    assert code == 0, err
    records = [
        json.loads(file.read_text())
        for file in public_files(folder)
        if file.name.endswith("record.json")
    ]
    return [facts["document_budget"]["input"] for facts in records]


def attack(project: Path) -> bool:
    """Return whether a collocation and a single word in its place are told apart with certainty."""
    told = 0
    secrets = [word for word in words_of(project, "gst") if word.count("_") == 2][:4]
    assert secrets, "the vocabulary has no collocation"
    for number, secret in enumerate(secrets):
        pair = [
            said(project / f"average-{number}-{which}", text)
            for which, text in enumerate((secret.replace("_", " "), "government"))
        ]
        print(f"one token of three words: B = {pair[0]}, of one word: B = {pair[1]}")
        told += pair[0] != pair[1]
    print(f"{told} of {len(secrets)} pairs told apart with certainty")
    return told > 0
