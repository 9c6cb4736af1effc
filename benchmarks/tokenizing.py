"""The compiled tokenizer beside the expressions that define it: the same tokens, and CPU time per token.

    uv run python -m benchmarks.tokenizing [--corpus FOLDER] [--documents N] [--json FILE]

Batch by batch both tokenize the same texts, one after the other in one process, and every token, sentence and span is
compared. Two passes over the same bytes give the floor: adding them up eight at a time, which only reads memory, and
looking up the class of each byte, the least that a scanner of bytes must do. Times are CPU seconds of the process;
reading files, comparing and compiling are not in them. Without a corpus the texts are made from a seed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.corpus import corpus_texts
from lexveil.runtime.tables import write_json
from lexveil.text import fast_tokenize
from lexveil.text.kernels.characters import LETTER
from lexveil.text.tokenize import normal_form, sentences, token_spans

BATCH = 5_000  # texts, as in the stage that tokenizes the corpus
SEED = 7
A = TypeVar("A")
B = TypeVar("B")


def made_texts(n: int) -> Iterator[str]:
    """Texts of about 200 words by Zipf's law, with the marks of English; one text in four has some beyond ASCII."""
    rng = np.random.default_rng(SEED)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(1, 11, 50_000)]
    words[20::97] = [f"{word}'s" for word in words[20::97]]
    words[30::97] = [word.capitalize() for word in words[30::97]]
    words[40::970] = [f"{number:,}.5" for number in range(len(words[40::970]))]
    words[50::970] = [f"www.{word}.org" for word in words[50::970]]
    marks = np.array(["", ",", ".", "!", "...", '"', "\n", " Dr."])
    chances = np.array([0.86, 0.05, 0.06, 0.005, 0.005, 0.01, 0.005, 0.005])
    for _ in range(n):
        size = int(rng.integers(20, 400))
        drawn = [words[at - 1] for at in np.minimum(rng.zipf(1.2, size), len(words)).tolist()]
        text = " ".join(map("".join, zip(drawn, rng.choice(marks, size, p=chances).tolist(), strict=True)))
        yield text.replace("'", "’").replace("...", "…") + " café" if rng.random() < 0.25 else text


@numba.njit(cache=True)
def _classes_of_bytes(
    data: npt.NDArray[np.uint8], classes: npt.NDArray[np.uint16]
) -> int:  # pragma: no cover - compiled
    """How many runs of bytes there are whose class has a letter."""
    runs = before = 0
    for byte in data:
        letter = classes[byte] & LETTER
        runs += letter > before
        before = letter
    return runs


def measure(texts: Iterable[str]) -> dict[str, Any]:
    """Tokenize in every way and compare.

    Returns:
        Counts of texts, bytes and tokens, all and beyond ASCII; differences, of six comparisons a batch; CPU seconds
        by way.
    """
    seconds: defaultdict[str, float] = defaultdict(float)

    def timed(way: str, work: Callable[[A], B], argument: A) -> B:
        start = time.process_time()
        result = work(argument)
        seconds[way] += time.process_time() - start
        return result

    # Compiled, and the table of classes made, before any clock is read.
    fast_tokenize.spans_of_texts(pa.array(["Dr. a@b.c"]))
    fast_tokenize.tokenize_texts(pa.array(["Dr. a@b.c"]))
    _classes_of_bytes(np.zeros(1, np.uint8), fast_tokenize._classes())

    count: Counter[str] = Counter()
    source = iter(texts)
    while batch := list(islice(source, BATCH)):
        array = pa.array(batch, pa.string())
        data, _ = fast_tokenize._buffers(array)
        timed("memory", lambda data: data[: len(data) // 8 * 8].view(np.uint64).sum(), data)
        timed("bytes", lambda data: _classes_of_bytes(data, fast_tokenize._classes()), data)
        expected = timed("regex", lambda batch: [sentences(text) for text in batch], batch)
        tokens = timed("scanner", fast_tokenize.tokenize_texts, array)
        places = timed("regex_spans", lambda batch: [_with_spans(text) for text in batch], batch)
        again, spans = timed("scanner_spans", fast_tokenize.spans_of_texts, array)

        flat = [form for text in expected for sentence in text for form in sentence]
        words = tokens.words.to_pylist()
        count["differences"] += sum(
            [
                [words[at] for at in tokens.ids.tolist()] != flat,
                tokens.sentence_sizes.tolist() != [len(sentence) for text in expected for sentence in text],
                tokens.sentences_per_text.tolist() != [len(text) for text in expected],
                spans.tolist() != [list(span) for text in places for sentence in text for span, _ in sentence],
                [words[at] for at in again.ids.tolist()] != [f for t in places for s in t for _, f in s],
                not again.words.equals(tokens.words),
            ]
        )
        count["texts"] += len(batch)
        count["bytes"] += len(data)
        count["tokens"] += len(flat)
        beyond = [text for text in batch if not text.isascii()]
        count["texts_beyond_ascii"] += len(beyond)
        count["bytes_of_texts_beyond_ascii"] += sum(len(text.encode()) for text in beyond)
        count["bytes_beyond_ascii"] += int(np.count_nonzero(data >= 128))
        count["tokens_beyond_ascii"] += sum(not form.isascii() for form in flat)
        count["normal_forms_by_python"] += _normal_forms_by_python(array)
    return {**count, "cpu_seconds": dict(seconds)}


def _with_spans(text: str) -> list[list[tuple[tuple[int, int], str]]]:
    """What documents are read with: the span and the normal form of each token."""
    return [[(span, normal_form(text[slice(*span)])) for span in sentence] for sentence in token_spans(text)]


def _normal_forms_by_python(array: pa.StringArray) -> int:
    """Distinct surfaces of a batch that the scanner leaves to ``normal_form``."""
    asked: list[str] = []

    def counted(surface: str) -> str:
        asked.append(surface)
        return normal_form(surface)

    with mock.patch.object(fast_tokenize, "normal_form", counted):
        fast_tokenize.tokenize_texts(array)
    return len(asked)


def report(measured: dict[str, Any]) -> str:
    """The figures as text."""
    texts, size, tokens = measured["texts"], measured["bytes"], measured["tokens"]
    seconds = measured["cpu_seconds"]
    rows = [f"{'':24}{'CPU s':>10}{'M tokens/s':>12}{'MB/s':>10}{'x regex':>9}"]
    for way, name, beside in (
        ("regex", "expressions", "regex"),
        ("scanner", "scanner", "regex"),
        ("regex_spans", "expressions, spans", "regex_spans"),
        ("scanner_spans", "scanner, spans", "regex_spans"),
        ("bytes", "floor: class per byte", "regex"),
        ("memory", "floor: read memory", "regex"),
    ):
        used = max(seconds[way], 1e-9)
        rows.append(
            f"{name:24}{used:10.3f}{tokens / used / 1e6:12.2f}{size / used / 1e6:10.1f}{seconds[beside] / used:9.1f}"
        )
    beyond, beyond_size = measured["texts_beyond_ascii"], measured["bytes_of_texts_beyond_ascii"]
    return "\n".join(
        [
            f"{texts:,} texts, {size:,} bytes, {tokens:,} tokens; comparisons that failed: {measured['differences']}",
            *rows,
            "all texts take the scanner: "
            f"{texts - beyond:,} of ASCII alone ({(texts - beyond) / texts:.1%} of texts, {1 - beyond_size / size:.1%} "
            f"of bytes), {beyond:,} with characters beyond it ({beyond / texts:.1%}, {beyond_size / size:.1%}), which "
            f"are {measured['bytes_beyond_ascii'] / size:.2%} of bytes, in {measured['tokens_beyond_ascii']:,} tokens",
            f"normal forms made by Python: {measured['normal_forms_by_python']:,}, one for "
            f"{tokens / max(1, measured['normal_forms_by_python']):,.0f} tokens",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokenizing", description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, help="folder of *train*.json.gz shards; without it, texts from a seed")
    parser.add_argument("--documents", type=int, help="stop after so many texts (made texts: 20,000 unless given)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    n = options.documents
    texts = islice(corpus_texts(options.corpus, "*train*.json.gz"), n) if options.corpus else made_texts(n or 20_000)
    measured = measure(texts)
    if not measured.get("texts"):
        parser.error(f"{options.corpus} holds no text in *train*.json.gz; name a folder of shards")
    print(report(measured))
    if options.json:
        write_json(measured, options.json)


if __name__ == "__main__":
    main()
