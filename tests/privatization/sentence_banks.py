"""Public sentences for banks of tests, which no one wrote."""

import csv
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

THINGS = (
    "film story book meal hotel room phone car garden school song house train service ticket price"
).split()
KINDS = (
    "good bad wonderful terrible boring great poor nice awful lovely cheap slow quiet strange"
).split()
TIMES = "today again yesterday anyway here".split()
SENTENCES = [
    f"The {thing} was {kind} {time}." for thing, kind, time in product(THINGS, KINDS, TIMES)
]


def write_texts(file: Path, sentences: Sequence[str] = SENTENCES) -> Path:
    """Documents of three sentences each, as JSON lines or CSV by the name of the file."""
    texts = [" ".join(sentences[start : start + 3]) for start in range(0, len(sentences), 3)]
    with file.open("w", encoding="utf-8", newline="") as out:
        if file.suffix == ".csv":
            writer = csv.writer(out)
            writer.writerow(["text"])
            writer.writerows([text] for text in texts)
        else:
            out.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    return file
