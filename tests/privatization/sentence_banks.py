"""Public sentences that no one wrote, banks of them, and a fault of their vectors."""

import csv
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lexveil.core.embeddings.sentences import SentenceSpace
from lexveil.lab.data.sentence_banks import BankOptions, build

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


def documents(sentences: Sequence[str] = SENTENCES) -> list[str]:
    """Documents of three sentences each."""
    return [" ".join(sentences[start : start + 3]) for start in range(0, len(sentences), 3)]


def write_texts(file: Path, sentences: Sequence[str] = SENTENCES) -> Path:
    """The documents of sentences, as JSON lines or CSV by the name of the file."""
    texts = documents(sentences)
    with file.open("w", encoding="utf-8", newline="") as out:
        if file.suffix == ".csv":
            writer = csv.writer(out)
            writer.writerow(["text"])
            writer.writerows([text] for text in texts)
        else:
            out.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    return file


def build_bank(folder: Path) -> Path:
    """Build a public bank of the model en from ``SENTENCES``, and return its folder."""
    options = BankOptions(model="en", is_public=True)
    build([write_texts(folder / "public.jsonl")], folder / "bank", options)
    return folder / "bank"


def scale_by_the_batch(patch: pytest.MonkeyPatch, n_units: int) -> None:
    """Plant a fault: vectors in batches of more than ``n_units`` units are shorter."""
    made = SentenceSpace.embed
    patch.setattr(
        SentenceSpace,
        "embed",
        lambda self, units: made(self, units) * np.float32(n_units / max(n_units, len(units))),
    )
