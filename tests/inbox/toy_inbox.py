"""A project whose inbox is released: few words, every limit of the gate wide open unless a test
closes it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lexveil.io.config import Configuration
from lexveil.release.inbox.report import ReleaseReport
from lexveil.release.inbox.run import release_inbox
from lexveil.release.ledger.ledger import Ledger
from tests.tasks.changing import configure

SECRET = "zorblaxia"  # stands in every text and must not come out anywhere
WORDS = "the government said the fire services in new south wales were there"


class Inbox:
    """An inbox, and what comes of it."""

    def __init__(self, root: Path) -> None:
        self.archive = root / "releases"
        self.folder = root / "inbox"
        self.root = root
        self.memory = root / ".lexveil/operator/releases"
        self.folder.mkdir()
        # Plain ids, so that tests can say which documents are there.
        self.configure(
            ids="plain",
            source="inbox",
            subject_column="id",
            document_budget=40.0,
            max_token_epsilon=40.0,
            gate={"min_coverage": 0.1, "max_length_ratio": None},
        )

    def configure(self, **values: Any) -> None:
        sections: dict[str, dict[str, Any]] = {"inbox": {}, "ledger": {}, "release": {}}
        for name, value in values.items():
            section = next(
                section
                for section in sections
                if name in type(getattr(Configuration(), section)).model_fields
            )
            sections[section][name] = value
        configure(self.root, **sections)

    def put(self, file: str, *documents: tuple[str, str] | dict[str, Any]) -> None:
        rows = [
            one if isinstance(one, dict) else {"id": one[0], "text": f"{one[1]} {SECRET}"}
            for one in documents
        ]
        (self.folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, dry_run: bool = False) -> ReleaseReport:
        return release_inbox(dry_run)

    def ids(self, file: Path | None = None) -> list[str]:
        found: list[str] = (
            pq.read_table(file or self.archive / "current.parquet").column("id").to_pylist()
        )
        return found

    def releases(self) -> list[Path]:
        return sorted(path for path in self.archive.glob("*") if path.is_dir())

    def record(self, number: int = -1) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.releases()[number] / "documents.parquet.record.json").read_text()
        )
        return found

    def spent(self) -> float:
        """Epsilon of all subjects over all releases."""
        with Ledger.open(".lexveil/ledger", None) as ledger:
            ((nano,),) = ledger.database.rows("select coalesce(sum(nano), 0) from balances")
        return float(nano) / 1e9

    def states(self) -> list[str]:
        with Ledger.open(".lexveil/ledger", None) as ledger:
            return [
                state
                for (state,) in ledger.database.rows("select state from releases order by number")
            ]

    def tree(self) -> dict[str, bytes]:
        """Everything that is archived."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files(self.archive)}


def files(folder: Path) -> Iterable[Path]:
    return (Path(where, name) for where, _, names in os.walk(folder) for name in names)
