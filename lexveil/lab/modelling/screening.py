"""Selection of the tokens of a packaged model from a project's corpus: counts of documents by SQL,
then word screens (lists of names, slurs and other words to leave out).

The lists come from packages that only the build needs, and from files beside this module.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import require
from lexveil.core.text.screens import Candidate, NameLists, has_slur, kept_within, unlike_a_word
from lexveil.io.config import MachineParams, ModelParams
from lexveil.io.execution import duckdb_session

LINES = pa.schema([("doc", pa.int32()), ("line", pa.string())])
SENTENCES_AT_A_TIME = 50_000  # sentences passed to DuckDB at a time
# smallest share of a pair's occurrences with capitals for a name; many people write names without
# capitals
NAME_SHARE = 0.25
OWN = Path(__file__).parent
FIRST_NAMES = ("dist.female.first", "dist.male.first")  # lists of the US census of 1990
SURNAMES = ("dist.all.last",)


@dataclass(frozen=True, slots=True)
class Screened:
    """Tokens of a model that passed the word screens, in their order, and the number of tokens that
    each screen left out.
    """

    kept: list[Candidate]
    dropped: dict[str, int]


def count_documents(
    segmentation: str, min_documents: int, machine: MachineParams
) -> list[Candidate]:
    """Count the documents in which each token of the segmented corpus occurs; return every word and
    collocation that occurs in enough documents, ordered by token.
    """
    tokens = require(paths.TOKENS, "sample_corpus")
    lines = require(paths.segmented(segmentation), "segment_corpus")
    with duckdb_session.session(machine) as con:
        con.register(
            "sentences", pa.RecordBatchReader.from_batches(LINES, _sentences(tokens, lines))
        )
        rows = duckdb_session.run(
            con, "model/token_documents", min_documents=min_documents
        ).fetchall()
    return [Candidate(*row) for row in rows]


def _sentences(tokens: Path, lines: Path) -> Iterator[pa.RecordBatch]:
    """Yield the sentences of the segmented corpus, each with the number of its document; both files
    have one row per sentence.
    """
    number = -1
    last = None
    with lines.open(encoding="utf-8", newline="\n") as source:
        for batch in pq.ParquetFile(tokens).iter_batches(SENTENCES_AT_A_TIME, columns=["doc_id"]):
            ids = np.array([last, *batch.column(0).to_pylist()], dtype=object)
            numbers = number + np.cumsum(ids[1:] != ids[:-1])
            number = int(numbers[-1])
            last = ids[-1]
            text = [next(source).rstrip("\n") for _ in range(len(numbers))]
            yield pa.record_batch(
                [pa.array(numbers, pa.int32()), pa.array(text, pa.string())], LINES
            )


def name_lists(machine: MachineParams) -> NameLists:
    """Load the word lists that identify names, and count the capitalised word pairs in the
    project's corpus.
    """
    with duckdb_session.session(machine) as con:
        con.register(
            "texts", con.read_parquet(str(require(paths.SAMPLE, "sample_corpus"))).select("text")
        )
        pairs = duckdb_session.run(con, "model/capitalised_pairs").fetchall()
    capitals = {(first, second): count for first, second, count in pairs}
    return NameLists(census(*FIRST_NAMES), census(*SURNAMES), own("public_names.txt"), capitals)


def screened(
    candidates: Sequence[Candidate], wanted: ModelParams, machine: MachineParams
) -> Screened:
    """Return the candidate tokens that pass the word screens of ``wanted``, at most ``max_tokens``,
    by falling count.

    Raises:
        RequestError: if a screen needs the lists of a package that is not installed.
    """
    dropped: Counter[str] = Counter()
    kept: list[Candidate] = []
    slurs = listed_slurs() if "slurs" in wanted.screens else frozenset()
    plain = own("plain_words.txt")
    names = name_lists(machine) if "names" in wanted.screens else None
    for one in candidates:
        if "patterns" in wanted.screens and (looks_like := unlike_a_word(one.token)):
            dropped[looks_like] += 1
        elif slurs and has_slur(one.token, slurs, plain):
            dropped["slur"] += 1
        elif names and "_" in one.token and names.in_name(one.token, one.count, NAME_SHARE):
            dropped["name of a person"] += 1
        else:
            kept.append(one)
    # A collocation is looked up by its words, and S1 needs each of these words as a token.
    words = {one.token for one in kept if "_" not in one.token}
    whole = [one for one in kept if "_" not in one.token or words.issuperset(one.token.split("_"))]
    dropped["collocation with a word that was left out"] = len(kept) - len(whole)
    chosen = kept_within(whole, wanted.max_tokens)
    dropped["beyond max_tokens"] = len(whole) - len(chosen)
    return Screened(chosen, dict(sorted(dropped.items())))


def listed_slurs() -> frozenset[str]:
    """Return the slurs listed in the package better-profanity and in slurs.txt.

    Raises:
        RequestError: if the package is not installed.
    """
    lines = (
        (_package("better_profanity") / "profanity_wordlist.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return frozenset(line.strip().lower() for line in lines) | own("slurs.txt")


def census(*files: str) -> frozenset[str]:
    """Return the names in census files, ``FIRST_NAMES`` or ``SURNAMES``, in lower case.

    Raises:
        RequestError: if the package is not installed.
    """
    lines = [
        line
        for file in files
        for line in (_package("names") / file).read_text(encoding="ascii").splitlines()
    ]
    return frozenset(line.split()[0].lower() for line in lines if line.strip())


def own(name: str) -> frozenset[str]:
    """Read a word list beside this module, one entry per line; # begins a comment."""
    lines = (OWN / name).read_text(encoding="utf-8").splitlines()
    return frozenset(entry for line in lines if (entry := line.partition("#")[0].strip()))


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        package = name.replace("_", "-")
        raise RequestError(
            f"model.screens: package {package} is not installed; pip install 'lexveil[model]'"
        )
    return Path(spec.origin).parent
