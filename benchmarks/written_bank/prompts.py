"""Prompts of the language model, which request texts of eight kinds about many subjects.

A prompt is a list of examples of one kind, followed by the head of one more text, which names its
subject. It depends on the seed and the number of the text alone. The examples are in this
repository (kinds.yaml); no prompt contains texts of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

KINDS = Path(__file__).with_name("kinds.yaml")
EXAMPLES = 3  # stands before the text that the model writes
SHARED = 64  # number of consecutive texts of a kind that have the same examples
OPENED = 0.5  # share of the texts whose first words are given


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text.

    Attributes:
        title: the line above the examples.
        openings: first words of a text, with {} in the place of the subject.
        examples: subject and text of each example.
    """

    title: str
    subjects: Sequence[str]
    openings: Sequence[str]
    examples: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The words that the language model reads before it writes a text.

    Attributes:
        number: number of the text.
        examples: the start of the prompt, which other texts share.
        head: the rest of the prompt, without the opening.
        opening: the first words of the text, or empty.
    """

    number: int
    examples: str
    head: str
    opening: str


def kinds() -> list[Kind]:
    """Return all kinds of text."""
    read = yaml.safe_load(KINDS.read_text(encoding="utf-8"))
    return [
        Kind(
            title=kind["title"],
            subjects=[subject.strip() for subject in kind["subjects"].split(",")],
            openings=kind["openings"],
            examples=[(subject, text) for subject, text in kind["examples"]],
        )
        for kind in read.values()
    ]


def head(subject: str) -> str:
    """Return the words before a text about a subject."""
    return f"{subject[:1].upper()}{subject[1:]}:"


def fingerprint() -> str:
    """Return the sha256 of everything from which prompts are made."""
    return hashlib.sha256(KINDS.read_bytes()).hexdigest()


def prompt(number: int, seed: int, among: Sequence[Kind]) -> Prompt:
    """Return the prompt of a text."""
    which = number % len(among)
    kind = among[which]
    block = number // (len(among) * SHARED)
    shared = np.random.default_rng([seed, which, block])
    chosen = shared.permutation(len(kind.examples))[:EXAMPLES].tolist()
    texts = [kind.examples[example] for example in chosen]
    listed = [f"{head(subject)} {text}" for subject, text in texts]
    own = np.random.default_rng([seed, which, block, number])
    subject = kind.subjects[int(own.integers(len(kind.subjects)))]
    opening = kind.openings[int(own.integers(len(kind.openings)))] if own.random() < OPENED else ""
    return Prompt(
        number=number,
        examples="\n\n".join([kind.title, *listed, ""]),
        head=head(subject),
        opening=opening.format(subject).strip(),
    )
