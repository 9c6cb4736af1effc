"""Reader of the texts of a corpus folder. This module imports no large library, because some
benchmarks measure the memory of the process that reads.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path


def corpus_texts(folder: Path, shards: str = "*.json.gz") -> Iterator[str]:
    """Yield the texts of all shards (JSON lines, gzip) of a corpus folder, in order."""
    for shard in sorted(folder.glob(shards)):
        with gzip.open(shard, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)
