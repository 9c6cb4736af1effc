"""Packaged models: one folder of words, counts, PMI and 8-bit vectors, with a card; nothing in it
is code.

    model.json        the card: what it is, its licence, sources and quality, and the sha256 of
                      every other file
    words.txt         V tokens, one a line, by falling count; collocations join their words by _
    counts.npy        (V,) uint32, occurrences in the corpus
    pmi.npy           (V,) float32 bits, of collocations; 0 of words
    vectors.npy       (V, p) int8, and
    scales.npy        (V,) float32: the vector of a token is its row times its scale, in float32
    trained_scales.npy  the same with the lengths as trained, where scales.npy has others; what a
    training begins with
    bigrams/          starts, ids and counts.npy: how often a token stands right after another; a
                      model need not have it
    orders/S.npy      (2, n) uint16 or uint32: orders of the tokens for 1-Diffractor; S is word
                      (words alone) or all
    structure.json    what one replaced word changes in public texts, by segmentation
    NOTICE.md         attribution of the sources

The proofs speak of the vectors as they are loaded: rounding happened before, once and in public.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from lexveil.accounting.results import Result, Sha256
from lexveil.artifacts.bigrams import read_bigrams, write_bigrams
from lexveil.artifacts.embeddings import read_arrays, read_words, write_arrays
from lexveil.artifacts.structure import MeasuredStructure
from lexveil.embeddings.bigrams import Bigrams
from lexveil.embeddings.scaling import Rule, scaled
from lexveil.embeddings.word_orders import WordLists
from lexveil.embeddings.word_space import WordSpace
from lexveil.parameters import MODEL_NAME
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import atomic_directory, write_json
from lexveil.text.collocation_index import MAX_WORDS, Collocations
from lexveil.text.encode import Lexicon
from lexveil.types import Floats, Orders, Vectors

MAX_DIMENSIONS = 4096
FORMAT = 1  # of the files; raised when a reader of today could not read them
CARD = "model.json"
SCALES, TRAINED_SCALES = "scales.npy", "trained_scales.npy"
BIGRAMS = "bigrams"
ORDERS = {"word": "orders/word.npy", "all": "orders/all.npy"}


class CorpusSource(Result):
    """One source of a model's corpus.

    Attributes:
        words: Both 0 where the texts are not known, as of vectors made elsewhere.
        license: Its licence and who states it.
        origin: Where the text came from.
    """

    name: str
    documents: int
    words: int
    license: str
    origin: str


class ModelCard(Result):
    """What a model is, of what, and how good.

    Attributes:
        format: Of the files of the folder.
        license: Under which the model may be used, as an SPDX expression or in words.
        built: Date, as YYYY-MM-DD.
        n_words: Tokens of one word.
        average_words: Words per document of the corpus: the public number by which a base epsilon
            becomes a budget.
        cleaning: What was left out of the corpus and of the vocabulary, and how it was found.
        dropped: Tokens that a screen left out, by screen.
        made_with: Hashes of the corpus and of the code, and versions of the libraries.
    """

    format: int
    name: str = Field(pattern=rf"^{MODEL_NAME}$")
    version: str = Field(pattern=r"^[0-9]+(\.[0-9]+){0,2}$")
    language: str
    license: str = Field(min_length=1)
    description: str
    built: str
    n_tokens: int = Field(ge=2, le=MAX_WORDS)
    n_words: int
    n_bigrams: int
    n_trigrams: int
    dimensions: int = Field(ge=2, le=MAX_DIMENSIONS)
    average_words: float = Field(ge=0, allow_inf_nan=False)
    sources: list[CorpusSource]
    cleaning: list[str]
    dropped: dict[str, int]
    parameters: dict[str, object]
    made_with: dict[str, str]
    quality: dict[str, Any]
    known_faults: list[str]
    files: dict[str, Sha256]


def quantized(vectors: Vectors) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Vectors (V, p) in 8 bits and a scale (V,) each: the largest coordinate of a row becomes
    127.
    """
    largest = np.abs(vectors).max(axis=1, initial=0.0).astype(np.float32)
    scales = np.where(largest > 0, largest / np.float32(127), np.float32(1)).astype(np.float32)
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def rescaled(
    rows: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    counts: npt.NDArray[Any],
    rule: Rule,
) -> npt.NDArray[np.float32]:
    """Scales (V,) by which the rows (V, p) have the lengths of a rule; those of rows of zeros stay.

    Args:
        scales: (V,), by which they have the lengths that they were trained with.
        counts: (V,) occurrences, by falling count.
    """
    tokens = [str(row) for row in range(len(rows))]
    trained = rows.astype(np.float32) * scales[:, None]
    wanted = scaled(WordSpace(tokens, trained, counts.astype(np.int64)), rule).vectors
    before, after = (np.linalg.norm(some.astype(np.float64), axis=1) for some in (trained, wanted))
    return np.where(before > 0, scales * (after / np.where(before > 0, before, 1)), scales).astype(
        np.float32
    )


@dataclass(frozen=True, slots=True)
class ModelContent:
    """What a model is written of.

    Attributes:
        space: V tokens; its vectors are rounded to 8 bits.
        pmi: (V,) bits; 0 of words.
        orders: by ``word`` and ``all``, (2, n) permutations.
        structure: by segmentation.
        notice: the attribution of the sources.
        lengths: of the vectors of the model; ``none`` leaves those of the space. Others stand
            beside those.
    """

    space: WordSpace
    pmi: Floats
    orders: Mapping[str, Orders]
    structure: Mapping[str, MeasuredStructure]
    notice: str
    lengths: Rule = "none"


def write_packaged(folder: Path, card: Mapping[str, Any], content: ModelContent) -> ModelCard:
    """Write a model; ``card`` is all of its card but for what follows from the content."""
    space, lengths = content.space, content.lengths
    rows, scales = quantized(np.asarray(space.vectors))
    n_words = space.n_words
    with atomic_directory(folder) as partial:
        arrays: dict[str, npt.NDArray[Any]] = {
            "counts": space.counts.astype(np.uint32),
            "pmi": content.pmi.astype(np.float32),
            "vectors": rows,
        }
        arrays["scales"] = (
            scales if lengths == "none" else rescaled(rows, scales, space.counts, lengths)
        )
        arrays |= {} if lengths == "none" else {"trained_scales": scales}
        (partial / "orders").mkdir()
        for name, order in content.orders.items():
            arrays[f"orders/{name}"] = order.astype(
                np.uint16 if order.shape[1] <= 2**16 else np.uint32
            )
        write_arrays(partial, arrays, space.tokens)
        write_json(
            {name: one.to_dict() for name, one in content.structure.items()},
            partial / "structure.json",
        )
        (partial / "NOTICE.md").write_text(content.notice, encoding="utf-8", newline="\n")
        files = sorted(file for file in partial.rglob("*") if file.is_file())
        whole = ModelCard(
            **card,
            format=FORMAT,
            n_tokens=len(space.tokens),
            **{
                name: int((n_words == n).sum())
                for n, name in enumerate(("n_words", "n_bigrams", "n_trigrams"), 1)
            },
            dimensions=rows.shape[1],
            files={file.relative_to(partial).as_posix(): sha256(file) for file in files},
        )
        write_json(whole.to_dict(), partial / CARD)
    return whole


def add_bigrams(folder: Path, bigrams: Bigrams) -> ModelCard:
    """Add the bigram counts of its V tokens to the model in ``folder``, and name their files in its
    card.
    """
    with atomic_directory(folder / BIGRAMS) as partial:
        write_bigrams(bigrams, partial)
    card = ModelCard.model_validate_json((folder / CARD).read_bytes())
    files = {
        file.relative_to(folder).as_posix(): sha256(file)
        for file in sorted((folder / BIGRAMS).iterdir())
    }
    whole = card.model_copy(update={"files": card.files | files})
    write_json(whole.to_dict(), folder / CARD)
    return whole


def collocations_of(tokens: Sequence[str], pmi: npt.NDArray[Any]) -> Collocations:
    """The collocations among V tokens, with their PMI in bits, (V,)."""
    n_words = (
        np.fromiter(map(str.count, tokens, repeat("_")), dtype=np.int64, count=len(tokens)) + 1
    )
    columns: list[list[list[str]]] = []
    bits: list[Floats] = []
    for size in (2, 3):
        rows = np.flatnonzero(n_words == size)
        words = "_".join([tokens[row] for row in rows.tolist()]).split("_") if len(rows) else []
        columns.append([words[place::size] for place in range(size)])
        bits.append(pmi[rows].astype(np.float64))
    return Collocations.build(columns[0], bits[0], columns[1], bits[1])


def lexicons_of(tokens: Sequence[str], pmi: npt.NDArray[Any], language: str) -> list[Lexicon]:
    """What texts are looked up in, of each segmentation, by V tokens and the PMI of those that are
    collocations.
    """
    collocations = collocations_of(tokens, pmi)
    single = [token for token in tokens if "_" not in token]
    joint = (
        Lexicon.build(segmentation, tokens, collocations, language)
        for segmentation in ("gst", "mst")
    )
    return [Lexicon.build("word", single, None, language), *joint]


@dataclass(frozen=True)
class PackagedModel:
    """A model in a folder; each part is read when it is first used, the vectors are mapped from
    disk.
    """

    folder: Path

    @cached_property
    def card(self) -> ModelCard:
        """Its card."""
        return ModelCard.model_validate_json((self.folder / CARD).read_bytes())

    @cached_property
    def hash(self) -> str:
        """The sha256 of its card, which has those of all other files."""
        return sha256(self.folder / CARD)

    @cached_property
    def tokens(self) -> list[str]:
        """All V tokens."""
        return read_words(self.folder / "words.txt")

    @cached_property
    def pmi(self) -> npt.NDArray[np.float32]:
        """(V,) bits; 0 of words."""
        return read_arrays(self.folder, "pmi")[0]

    def rows(self, segmentation: str) -> npt.NDArray[np.int64]:
        """The rows of the tokens of a segmentation: those of one word for ``word``, all for
        others.
        """
        if segmentation != "word":
            return np.arange(len(self.tokens))
        return np.array(
            [row for row, token in enumerate(self.tokens) if "_" not in token], dtype=np.int64
        )

    def space(self, segmentation: str, *, as_trained: bool = False) -> WordSpace:
        """The embedding of a segmentation: a part of the one space; also with the lengths that
        training gave it.
        """
        rows = self.rows(segmentation)
        scales = "trained_scales" if as_trained and TRAINED_SCALES in self.card.files else "scales"
        vectors, lengths, counts = (
            array[rows] for array in read_arrays(self.folder, "vectors", scales, "counts")
        )
        tokens = self._tokens(segmentation)
        return WordSpace(
            tokens, vectors.astype(np.float32) * lengths[:, None], counts.astype(np.int64)
        )

    @staticmethod
    def order_file(segmentation: str) -> str:
        """Where the orders of a segmentation lie in the folder."""
        return ORDERS["word" if segmentation == "word" else "all"]

    def word_lists(self, segmentation: str, name: str) -> WordLists:
        """List set L0, L1 or L2; of the one model, L0 and L2 are the same list."""
        (orders,) = read_arrays(self.folder, self.order_file(segmentation).removesuffix(".npy"))
        chosen = orders if name == "L1" else orders[:1]
        return WordLists(self._tokens(segmentation), chosen.astype(np.int32))

    def lexicon(self, segmentation: str) -> Lexicon:
        """What texts are looked up in: its tokens and, but for ``word``, its collocations, which
        all have a vector.
        """
        tokens = self._tokens(segmentation)
        rows = {token: row for row, token in enumerate(tokens)}
        collocations = None if segmentation == "word" else collocations_of(self.tokens, self.pmi)
        return Lexicon(segmentation, tokens, rows, collocations, self.card.language)

    def files(self, *names: str) -> dict[str, Path]:
        """Files of the folder by the names that a record gives them, models/NAME/FILE."""
        return {f"models/{self.card.name}/{name}": self.folder / name for name in names}

    def bigrams(self, segmentation: str) -> Bigrams | None:
        """How often a token stands right after another, by the rows of ``space``; None of a model
        without counts.
        """
        if f"{BIGRAMS}/starts.npy" not in self.card.files:
            return None
        counted = read_bigrams(self.folder / BIGRAMS)
        if segmentation == "word":
            (counts,) = read_arrays(self.folder, "counts")
            counted = counted.of_words(self.tokens, counts)
        return counted.only(self.rows(segmentation))

    def structure(self, segmentation: str) -> MeasuredStructure | None:
        """What one replaced word changes in public texts; None if it was not measured."""
        measured = json.loads((self.folder / "structure.json").read_bytes()).get(segmentation)
        return None if measured is None else MeasuredStructure.model_validate(measured)

    def _tokens(self, segmentation: str) -> list[str]:
        return (
            self.tokens
            if segmentation != "word"
            else [token for token in self.tokens if "_" not in token]
        )
