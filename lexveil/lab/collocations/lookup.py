"""Functions of the command `lexveil collocations`, which looks up collocations and shows how they
segment a text. No stage of the pipeline uses this module.

DuckDB reads the Parquet files of the stage and keeps only the requested rows, so that an answer
does not wait until millions of collocations are in memory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError, option
from lexveil.core.association import COLUMNS, MEASURES, rendered
from lexveil.io.artifacts.collocation_tables import collocation_files
from lexveil.io.config import load_configuration
from lexveil.io.execution import duckdb_session

NGRAMS = {2: "bigrams", 3: "trigrams"}
PLACES = ("first_word", "second_word", "third_word")
LIMIT = 30  # default number of listed collocations of a word
_DECIMALS = {measure.column: measure.decimals for measure in MEASURES}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def look_up(
    text: str | None = None,
    top: int | None = None,
    word: str | None = None,
    *,
    by: str | None = None,
    length: int | None = None,
    min_count: int | None = None,
    limit: int | None = None,
) -> dict[str, object]:
    """Look up the collocations of a text, the best collocations, or the collocations of a word, for
    the command `lexveil collocations`; exactly one of ``text``, ``top`` and ``word`` is given.

    Args:
        text: a text, to show its collocations and how they cut it; ``-`` is standard input.
        top: number of the best collocations to list.
        word: a word, to list the collocations that contain its normal form.
        by: the order of the list: count, or the column of a measure; pmi_bits is the default.
        length: only collocations of this many words, 2 or 3.
        min_count: only collocations counted at least this often.
        limit: greatest number of collocations of ``word`` (default: LIMIT).

    Returns:
        ``measures``, the columns that the collocations have, and ``collocations``: for each its
            words, joined by a space, its length in words, whether only the base has it, and its
            measures. For a text also ``sentences``, as ``cut`` returns them; for a list also
            ``by``, the order of the list.

    Raises:
        RequestError: if the options contradict each other or name an unknown measure, or there are
            no collocations yet.
    """
    chosen = {"by": by, "length": length, "min_count": min_count, "limit": limit}
    useless = [
        name
        for name, value in chosen.items()
        if value is not None and (text or (name == "limit" and top))
    ]
    if useless:
        question = (
            "TEXT, because all collocations of a text are shown"
            if text
            else f"{option('top')}, which already limits the list"
        )
        raise RequestError(f"{option(useless[0])} does not go with {question}")
    if text is not None:
        return of_text(_standard_input() if text == "-" else _unicode(text, "TEXT"))
    asked = {} if word is None else {"word": _one_word(word)}
    with _collocations() as (con, measures):
        by = by or "pmi_bits"
        if by not in measures:
            raise RequestError(
                f"{option('by')} {by}: this project has no such measure; it has "
                f"{', '.join(measures)} "
                "(params.yaml: collocations.measures names the measures that the project computes)"
            )
        values = {
            "by": by,
            "min_count": min_count or 1,
            "size": length,
            "word": None,
            "n": top or limit or LIMIT,
        }
        best = rendered(duckdb_session.text("collocations/collocations_best"))
        table = con.sql(best, params=values | asked).to_arrow_table()
    return asked | {"by": by, "measures": measures, "collocations": _rows(table, measures)}


def of_text(text: str) -> dict[str, object]:
    """Return the collocations that occur in a text, in the text's order, and the sentences of the
    text under every segmentation.

    Raises:
        RequestError: if the text holds no token, or there are no collocations yet.
    """
    from lexveil.core.text.tokenize import sentences

    split = sentences(text)
    if not split:
        raise RequestError("TEXT holds no words")
    ngrams = dict.fromkeys(
        tuple(words[start : start + size])
        for words in split
        for start in range(len(words))
        for size in NGRAMS
        if start + size <= len(words)
    )
    with _collocations() as (con, measures):
        for size, name in NGRAMS.items():
            conditions = [
                dict(zip(PLACES, ngram, strict=False)) for ngram in ngrams if len(ngram) == size
            ]
            schema = pa.schema([(place, pa.string()) for place in PLACES[:size]])
            con.register(f"given_{name}", pa.Table.from_pylist(conditions, schema))
        query = rendered(duckdb_session.text("collocations/collocations_among"))
        collocations = _rows(con.sql(query).to_arrow_table(), measures)
    by_words = {tuple(row["words"].split(" ")): row for row in collocations}
    return {
        "measures": measures,
        "collocations": [by_words[ngram] for ngram in ngrams if ngram in by_words],
        "sentences": cut(split, {ngram: row["pmi_bits"] for ngram, row in by_words.items()}),
    }


def cut(
    split: Sequence[Sequence[str]], pmi: dict[tuple[str, ...], float]
) -> list[dict[str, object]]:
    """Segment sentences into tokens by every segmentation, such as single words or collocations.

    Args:
        split: the normal forms of each sentence.
        pmi: PMI in bits of every collocation in the sentences.

    Returns:
        For each sentence, by segmentation: ``tokens``, each with its words joined by a space, and
            ``total_pmi_bits``, the sum of the PMI of the tokens that are collocations.
    """
    import numpy as np

    from lexveil.core.text.collocation_index import (
        Collocations,  # compiled code: loaded only for a text
    )
    from lexveil.core.text.segment import SEGMENTATIONS, segment

    columns: list[Any] = []
    for size in NGRAMS:
        ngrams = [ngram for ngram in pmi if len(ngram) == size]
        columns.append([[ngram[place] for ngram in ngrams] for place in range(size)])
        columns.append(np.array([pmi[ngram] for ngram in ngrams], dtype=np.float64))
    collocations = Collocations.build(*columns)
    rows: list[dict[str, Any]] = []
    for words in split:
        offsets = np.array([0, len(words)])
        scores = collocations.scores(collocations.ids(words), offsets)
        of_sentence = {}
        for name in SEGMENTATIONS:
            sizes = segment(name, *scores, offsets).tolist()
            tokens = [tuple(words[i : i + size]) for i, size in enumerate(sizes) if size]
            of_sentence[name] = {
                "tokens": [" ".join(token) for token in tokens],
                "total_pmi_bits": sum((pmi[token] for token in tokens if len(token) > 1), 0.0),
            }
        rows.append(of_sentence)
    return rows


def as_text(result: Mapping[str, Any]) -> list[str]:
    """Format a result of ``look_up`` as lines of text to print."""
    rows = result["collocations"]
    names = result["measures"]
    has_base = any(row["from_base"] for row in rows)
    cells = [[*names, *["from"] * has_base, "collocation"]]
    for row in rows:
        source = ["base" if row["from_base"] else "corpus"] * has_base
        cells.append(
            [*(_figure(name, row[name]) for name in names), *source, _visible(row["words"])]
        )
    # Words come last, because their width in a terminal is not known.
    widths = [*(max(map(len, column)) for column in [*zip(*cells, strict=True)][:-1]), 0]
    lines = (
        ["  ".join(map(str.rjust, line, widths)) for line in cells] if rows else ["no collocations"]
    )
    for number, of_sentence in enumerate(result.get("sentences", ()), 1):
        lines += ["", f"sentence {number}"]
        for name, segments in of_sentence.items():
            shown = " ".join(f"[{_visible(token)}]" for token in segments["tokens"])
            lines.append(f"  {name:<9}  {segments['total_pmi_bits']:8.2f} bits  {shown}")
    return lines


def _figure(name: str, value: float | None) -> str:
    if value is None:  # the base lacks this measure
        return "–"
    return f"{value:,}" if name == "count" else f"{value:.{_DECIMALS[name]}f}"


def _visible(words: str) -> str:
    """Escape control characters, so that words from a crawl cannot control the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", words)


@contextmanager
def _collocations() -> Iterator[tuple[duckdb.DuckDBPyConnection, list[str]]]:
    """Open a DuckDB database with the views ``bigrams`` and ``trigrams``; yield the connection and
    the names of the measures that both views have.
    """
    files = {name: collocation_files(name) for name in NGRAMS.values()}
    columns = set.intersection(*(set(pq.read_schema(own).names) for own, *_ in files.values()))
    with duckdb_session.session(load_configuration().machine) as con:
        for name, (own, *of_base) in files.items():
            tables = [(own, "false"), *((file, "true") for file in of_base)]
            parts = (
                f"select *, {is_base} as from_base from "
                f"read_parquet({duckdb_session.file_list([file])})"
                for file, is_base in tables
            )
            con.execute(f'create temp view "{name}" as {" union all by name ".join(parts)}')
        yield con, [name for name in COLUMNS if name in columns]


def _rows(table: pa.Table, measures: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for row in table.to_pylist():
        words = [row[place] for place in PLACES if row[place] is not None]
        about = {"words": " ".join(words), "length": len(words), "from_base": row["from_base"]}
        rows.append(about | {name: row[name] for name in measures})
    return rows


def _one_word(word: str) -> str:
    """Return the normal form of a command-line argument that must be one word."""
    from lexveil.core.text.tokenize import sentences

    tokens = [token for words in sentences(_unicode(word, option("word"))) for token in words]
    if len(tokens) != 1:
        raise RequestError(
            f"{option('word')} {word!r} is {len(tokens)} words to the tokenizer; give one, "
            "or a TEXT"
        )
    return tokens[0]


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"standard input is not UTF-8 at byte {error.start:,}; convert it"
        ) from None


def _unicode(argument: str, name: str) -> str:
    """Return a command-line argument unchanged; raise RequestError if the argument is not UTF-8,
    which Python marks by unpaired surrogates.
    """
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise RequestError(f"{name} is not UTF-8; convert it") from None
    return argument
