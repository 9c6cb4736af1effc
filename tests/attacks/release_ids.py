"""Tell from an archive of releases which documents are the same, and which versions of one have the
same text.

A ticket is released, changed and changed back: three releases. The observer compares all that is
published beside the texts, and looks for a value that stands for one document in several releases,
or for one text.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lexveil.release.inbox.run import release_inbox
from tests.attacks.attacker import public_files
from tests.tasks.changing import configure

WORDS = "the government said the fire services in new south wales were there"
VERSIONS = (WORDS, f"{WORDS} for the people", WORDS)
# shorter values are numbers and the like, which many rows have
SHOWN = {"text", "state"}
COMMON = 8


def attack(project: Path) -> bool:
    """Return whether the first and the last version are known to be of one text, or all versions of
    one document."""
    inbox = project / "inbox"
    inbox.mkdir()
    gate = {"min_coverage": 0.0, "max_unprotected": 1.0, "max_length_ratio": None}
    source = {"source": "inbox", "subject_column": "who", "document_budget": 20.0}
    configure(project, inbox=source | {"gate": gate})
    names: list[str] = []
    for version, text in enumerate(VERSIONS):
        rows = [
            {"id": "ticket", "who": "ana", "text": text},
            {"id": f"other-{version}", "who": "ben", "text": WORDS},
        ]
        (inbox / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        names.append(str(release_inbox().release))
    releases_of = defaultdict(set)
    for name, value in _values(project / "releases", names):
        releases_of[value].add(names.index(name))
    same_text = [value for value, found in releases_of.items() if found == {0, 2}]
    same_document = [value for value, found in releases_of.items() if found == {0, 1, 2}]
    print(
        f"{len(same_text)} values stand for one text in its releases, {len(same_document)} "
        "for one document"
    )
    return bool(same_text or same_document)


def _values(archive: Path, names: list[str]) -> list[tuple[str, Any]]:
    """Release and value, of all that is published of rows."""
    values = []
    for file in public_files(archive):
        if file.suffix != ".parquet" or file.name == "current.parquet":
            continue
        for row in pq.read_table(file).to_pylist():
            name = row.get("release") or file.parent.name
            known = (
                value for column, value in row.items() if column not in SHOWN and value not in names
            )
            values += [
                (name, value)
                for value in known
                if isinstance(value, str | bytes) and len(value) >= COMMON
            ]
    return values
