"""Labelled words to tune on: read from a file or the project's documents, and matched with an embedding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.document_sets import load_documents
from lexveil.errors import RequestError
from lexveil.formats.input_files import find_sources
from lexveil.formats.messages import shown
from lexveil.formats.readers import open_table
from lexveil.formats.values import plain_value, text_value
from lexveil.text.tokenize import normal_form
from lexveil.types import Ids


@dataclass(frozen=True, slots=True)
class WordList:
    """Labelled words that an embedding knows.

    Attributes:
        rows: (W,) of the embedding, ascending.
        labels: (W,) places in ``classes``.
        classes: the labels, by name.
        n_read: entries of the list.
        n_repeated: left out, because the same word with the same label stands before.
        n_ambiguous: words left out, because they have several labels.
        n_unknown: words left out, because the embedding does not have them.
    """

    rows: Ids
    labels: Ids
    classes: list[str]
    n_read: int
    n_repeated: int
    n_ambiguous: int
    n_unknown: int

    def summary(self) -> dict[str, Any]:
        """The numbers, as JSON values."""
        counts = np.bincount(self.labels, minlength=len(self.classes)).tolist()
        return {
            "read": self.n_read,
            "used": len(self.rows),
            "repeated": self.n_repeated,
            "with_several_labels": self.n_ambiguous,
            "unknown": self.n_unknown,
            "labels": dict(zip(self.classes, counts, strict=True)),
        }


def known_words(entries: Iterable[tuple[str, str]], tokens: Sequence[str]) -> WordList:
    """The words of a list that are among the tokens of an embedding, by their normal form.

    Args:
        entries: (word, label).
        tokens: V tokens of the embedding.
    """
    labels_of: dict[str, set[str]] = {}
    n_read = n_repeated = 0
    for word, label in entries:
        labels = labels_of.setdefault(normal_form(word), set())
        n_read += 1
        n_repeated += label in labels
        labels.add(label)
    rows = {token: row for row, token in enumerate(tokens) if token in labels_of}
    certain = {word: next(iter(labels)) for word, labels in labels_of.items() if len(labels) == 1}
    used = sorted((rows[word], label) for word, label in certain.items() if word in rows)
    classes = sorted({label for _, label in used})
    number = {label: at for at, label in enumerate(classes)}
    return WordList(
        np.array([row for row, _ in used], dtype=np.int64),
        np.array([number[label] for _, label in used], dtype=np.int64),
        classes,
        n_read,
        n_repeated,
        len(labels_of) - len(certain),
        len(certain) - len(used),
    )


def read_words(file: Path) -> list[tuple[str, str]]:
    """Words and labels of a file with columns text or word, and label.

    Raises:
        RequestError: naming file and row: not readable, without the columns, a word or label missing.
    """
    if file.is_dir():
        raise RequestError(f"{shown(file)}: is a folder; give a file")
    (source,) = find_sources([file])
    if not source.format.has_columns:
        raise RequestError(f"{shown(file)}: a plain text has no labels; give a table with columns word and label")
    # Whether it has these columns is not asked of the reader: it would advise an option that is not there.
    with open_table(source, None, ("text", "word", "label")) as table:
        column = next((name for name in ("text", "word") if name in table.columns), None)
        if column is None or "label" not in table.columns:
            raise RequestError(f"{shown(file)}: a list of words has columns label and text (or word); rename them so")
        entries = []
        for row in table.rows:
            where = source.location(row.line)
            word = text_value(row.values.get(column), column, where)
            label = plain_value(row.values.get("label"), "label", where)
            if not word or label is None:
                raise RequestError(f"{where}: the {column if not word else 'label'} is missing")
            entries.append((word.strip(), label))
    return entries


def words_of_project() -> tuple[Path, list[tuple[str, str]]]:
    """The file and the entries of the one document set whose texts are single words with labels.

    Raises:
        RequestError: if there is none, or several.
    """
    documents = load_documents().select(["dataset", "text", "label"]).to_pylist()
    sets: dict[str, list[tuple[str, str]]] = {}
    others = set()
    for row in documents:
        if row["label"] is None or len(row["text"].split()) != 1:
            others.add(row["dataset"])
        else:
            sets.setdefault(row["dataset"], []).append((row["text"].strip(), row["label"]))
    found = {name: entries for name, entries in sets.items() if name not in others}
    if len(found) != 1:
        there = f"several are: {', '.join(sorted(found))}" if found else "none is"
        raise RequestError(
            f"--words: which words to tune on? Of the sets in {paths.DOCUMENTS} that are single words with labels, "
            f"{there}; give a file with columns word and label, such as an opinion lexicon"
        )
    ((name, entries),) = found.items()
    return paths.DOCUMENTS / f"{name}.parquet", entries
