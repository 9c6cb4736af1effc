"""The embedded default: real text that ships inside the gensim package, and invented reviews
(reviews.jsonl).

The reviews have four made-up authors, each with topics and favourite words that about half of their
sentences follow: an attacker tells the authors apart far better than chance, and not perfectly.
Their words are those of the corpus.

The committed data.dvc holds the hash of what is written here, so every machine must write the same
bytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import zlib
from pathlib import Path

from lexveil.data.corpus import c4_line
from lexveil.data.documents import document, made_id, write_set
from lexveil.errors import RequestError

REVIEWS = Path(__file__).with_name("reviews.jsonl")
VALIDATION = 5  # every fifth sentence of each label is held out

# The Lee news corpus and 200 sentences of Pang and Lee's film reviews, as gensim's wheel carries
# them for its tests.
TEST_DATA = {
    "lee_background.cor": "5d78d6dafd953bbf65797bef09a9ffb9ec430583381be705f8fd460000f370fb",
    "lee.cor": "a878f9a58f6743c32985c56c2f2f75988386216b38a4023a01fd3bcf7884d93e",
    "pang_lee_polarity.cor": "662c1b7c3bd0612eaaaf3f0c694cbd3897e30c0d87d2940b46c9fd0d15ed70c1",
}


def write_default_corpus(folder: Path) -> None:
    """350 news articles as one shard in C4's form.

    Raises:
        RequestError: if gensim's test data is missing or not what the committed data.dvc was made
            from.
    """
    folder.mkdir(parents=True)
    lines = b"".join(c4_line(text) for text in articles())
    (folder / "corpus-train.00000-of-00001.json.gz").write_bytes(stored_gzip(lines))


def write_default_documents(folder: Path) -> None:
    """pang_lee.parquet (200 sentences, label) and reviews.parquet (240 reviews, label, attribute =
    author).

    Raises:
        RequestError: as ``write_default_corpus``.
    """
    folder.mkdir(parents=True)
    # Not compressed, for the reason given at stored_gzip: 70 kB are not worth a dependence on a
    # compressor.
    seen, sentences = {"0": 0, "1": 0}, []
    for number, (label, text) in enumerate(polarity(), 1):
        seen[label] += 1
        split = "train" if seen[label] % VALIDATION else "validation"
        sentences.append(document(made_id("pang_lee", number), split, text, label=label))
    write_set(sentences, folder / "pang_lee.parquet", compression="none")
    reviews = [json.loads(line) for line in REVIEWS.read_text(encoding="utf-8").splitlines()]
    rows = (
        document(made_id("reviews", number), attribute=review.pop("author"), **review)
        for number, review in enumerate(reviews, 1)
    )
    write_set(rows, folder / "reviews.parquet", compression="none")


def articles() -> list[str]:
    """The Lee corpus: its 300 background articles, then the 50 of the study."""
    return [line for file in ("lee_background.cor", "lee.cor") for line in _lines(file)]


def polarity() -> list[tuple[str, str]]:
    """(label, sentence) of each labelled sentence; label "1" for a positive review, "0" for a
    negative one.
    """
    labels = {"__label__neg": "0", "__label__pos": "1"}
    pairs = [line.split(" ", 1) for line in _lines("pang_lee_polarity.cor")]
    return [(labels[label], text.strip()) for label, text in pairs]


def _lines(file: str) -> list[str]:
    # Found without an import of gensim, which takes seconds.
    spec = importlib.util.find_spec("gensim")
    path = Path(spec.origin).parent / "test" / "test_data" / file if spec and spec.origin else None
    if path is None or not path.is_file():
        raise RequestError(
            f"gensim's test data ({file}) is not installed; run `uv sync "
            "--reinstall-package gensim`"
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != TEST_DATA[file]:
        raise RequestError(
            f"{path}: not what the default is made from; `uv sync --reinstall-package gensim`"
        )
    # Pound signs, dashes and accents stand there as Windows writes them.
    return [line.strip() for line in content.decode("cp1252").split("\n") if line.strip()]


def stored_gzip(content: bytes) -> bytes:
    """A gzip file of blocks that are stored, not compressed.

    Any gzip reads it, and no compressor has a say in its bytes: zlib and zlib-ng, of which a Python
    may have either, compress the same text to different bytes, and the hash in data.dvc would hold
    on some machines only.
    """
    blocks = [content[start : start + 65_535] for start in range(0, len(content), 65_535)] or [b""]
    # deflate; no flags, no time, no file name; system unknown
    out = [b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"]
    for number, block in enumerate(blocks, 1):
        size = len(block)
        last = bytes([number == len(blocks)])
        out += [last, size.to_bytes(2, "little"), (size ^ 0xFFFF).to_bytes(2, "little"), block]
    out += [zlib.crc32(content).to_bytes(4, "little"), (len(content) % 2**32).to_bytes(4, "little")]
    return b"".join(out)
