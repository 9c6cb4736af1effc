"""Packaged models: a folder with words, counts, PMI and 8-bit vectors, and a card. It contains no
code.

    model.json        the card: description, licence, sources and quality, and the SHA-256 of
                      every other file
    words.txt         V tokens, one per line, by falling count; collocations join their words by _
    counts.npy        (V,) uint32, occurrences in the corpus
    pmi.npy           (V,) float32, PMI of collocations in bits; 0 for single words
    vectors.npy       (V, p) int8, and
    scales.npy        (V,) float32: the vector of a token is its row times its scale, in float32
    trained_scales.npy  (V,) float32, the scales for the lengths as trained, if scales.npy gives
                      other lengths; a training that starts from the model uses these scales
    bigrams/          optional: starts, ids and counts.npy, which count how often a token follows
                      another token
    orders/S.npy      (2, n) uint16 or uint32: orders of the tokens for 1-Diffractor; S is word
                      (single words) or all
    structure.json    sensitivity of the disclosed structure in public texts, by segmentation
    NOTICE.md         attribution of the sources

The proofs are about the vectors as they are loaded, because the vectors were rounded once, before
any use, and the rounding is public.
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

from lexveil.base.parameters import MODEL_NAME
from lexveil.base.runtime.hashes import SHORT, sha256
from lexveil.base.runtime.tables import atomic_directory, write_json
from lexveil.base.types import Floats, Orders, Vectors
from lexveil.core.accounting.results import Result, Sha256
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.scaling import Rule, scaled
from lexveil.core.embeddings.word_orders import WordLists
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.collocation_index import MAX_WORDS, Collocations
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts.embeddings import (
    read_arrays,
    read_bigrams,
    read_words,
    write_arrays,
    write_bigrams,
)
from lexveil.io.artifacts.structure import MeasuredStructure

MAX_DIMENSIONS = 4096
# version of the file format; raise it if older versions of Lexveil could not read the files
FORMAT = 1
CARD = "model.json"
SCALES = "scales.npy"
TRAINED_SCALES = "trained_scales.npy"
BIGRAMS = "bigrams"
ORDERS = {"word": "orders/word.npy", "all": "orders/all.npy"}


class CorpusSource(Result):
    """One source of the corpus from which a model was made.

    Attributes:
        documents: Number of documents, or 0 if the texts are not known, as for external vectors.
        words: Number of words, or 0 if the texts are not known.
        license: Licence of the source, and who states the licence.
        origin: Origin of the text.
    """

    name: str
    documents: int
    words: int
    license: str
    origin: str


class ModelCard(Result):
    """Metadata card (JSON) of a model: its description, its sources and its quality.

    Attributes:
        format: Version of the format of the files in the folder.
        license: Licence of the model, as an SPDX expression or in words.
        built: Date, as YYYY-MM-DD.
        n_words: Number of tokens that are single words.
        average_words: Mean words per document of the corpus, a public number that turns a base
            epsilon into a budget.
        cleaning: Texts and tokens that were left out of the corpus and the vocabulary, and how they
            were found.
        dropped: Number of tokens that each screen left out.
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
    """Round vectors (V, p) to 8 bits with one scale per row, (V,). The largest coordinate of a row
    becomes 127.
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
    """Return new scales (V,) that change the lengths of the vectors (V, p) by a rule; scales of
    zero rows stay unchanged.

    Args:
        rows: (V, p) vectors in 8 bits.
        scales: (V,) scales that give the rows their trained lengths.
        counts: (V,) occurrences, by falling count.
        rule: the rule of the lengths.
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
    """Content of a packaged model to be written.

    Attributes:
        space: V tokens; its vectors are rounded to 8 bits.
        pmi: (V,) bits; 0 for single words.
        orders: (2, n) permutations, by ``word`` and ``all``.
        structure: measured sensitivity of the disclosed structure, by segmentation.
        notice: attribution of the sources.
        lengths: rule for the lengths of the model's vectors; ``none`` keeps those of ``space``.
            With another rule, both are stored.
    """

    space: WordSpace
    pmi: Floats
    orders: Mapping[str, Orders]
    structure: Mapping[str, MeasuredStructure]
    notice: str
    lengths: Rule = "none"


def write_packaged(folder: Path, card: Mapping[str, Any], content: ModelContent) -> ModelCard:
    """Write a packaged model into a folder.

    Args:
        card: the fields of the metadata card that do not follow from the content.
        content: words, vectors and other arrays of the model.
    """
    space = content.space
    lengths = content.lengths
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
    """Add the bigram counts of V tokens to the model in ``folder``, and add the hashes of the new
    files to its metadata card.
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
    """Return the multi-word collocations among V tokens, with their PMI in bits, (V,)."""
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
    """Return the lexicon (vocabulary and collocations) of each segmentation, for V tokens and their
    PMI, (V,) bits.
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
    """A packaged model in a folder. Each part is read when it is first used; the vectors are
    memory-mapped from disk.
    """

    folder: Path

    @cached_property
    def card(self) -> ModelCard:
        """The metadata card of the model."""
        return ModelCard.model_validate_json((self.folder / CARD).read_bytes())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the metadata card, which lists the hashes of all other files."""
        return sha256(self.folder / CARD)

    @property
    def pinned(self) -> str:
        """The text NAME@HASH, which names this exact content of the model in params.yaml."""
        return f"{self.card.name}@{self.hash[:SHORT]}"

    @cached_property
    def tokens(self) -> list[str]:
        """All V tokens of the model."""
        return read_words(self.folder / "words.txt")

    @cached_property
    def pmi(self) -> npt.NDArray[np.float32]:
        """PMI of the tokens, (V,) bits; 0 for single words."""
        return read_arrays(self.folder, "pmi")[0]

    def rows(self, segmentation: str) -> npt.NDArray[np.int64]:
        """Return the rows of the tokens of a segmentation. The segmentation ``word`` has the rows
        of the single words, and the other segmentations have all rows.
        """
        if segmentation != "word":
            return np.arange(len(self.tokens))
        return np.array(
            [row for row, token in enumerate(self.tokens) if "_" not in token], dtype=np.int64
        )

    def space(self, segmentation: str, *, as_trained: bool = False) -> WordSpace:
        """Return the embedding of a segmentation, which is a part of the model's one embedding.
        With ``as_trained``, its vectors have the lengths from the training.
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
        """Return the path of the file with the word orders of a segmentation, relative to the
        model's folder.
        """
        return ORDERS["word" if segmentation == "word" else "all"]

    def word_lists(self, segmentation: str, name: str) -> WordLists:
        """Return the set of word lists L0, L1 or L2. The lists of L0 and L2 are equal, because a
        packaged model is a single word model.
        """
        (orders,) = read_arrays(self.folder, self.order_file(segmentation).removesuffix(".npy"))
        chosen = orders if name == "L1" else orders[:1]
        return WordLists(self._tokens(segmentation), chosen.astype(np.int32))

    def lexicon(self, segmentation: str) -> Lexicon:
        """Return the lexicon of a segmentation: its tokens and, except for ``word``, its
        collocations. All collocations have a vector.
        """
        tokens = self._tokens(segmentation)
        rows = {token: row for row, token in enumerate(tokens)}
        collocations = None if segmentation == "word" else collocations_of(self.tokens, self.pmi)
        return Lexicon(segmentation, tokens, rows, collocations, self.card.language)

    def files(self, *names: str) -> dict[str, Path]:
        """Return files of the model's folder by their names in privacy records, which are
        models/NAME/FILE.
        """
        return {f"models/{self.card.name}/{name}": self.folder / name for name in names}

    def bigrams(self, segmentation: str) -> Bigrams | None:
        """Return the bigram counts, indexed by the rows of ``space``. The result is None if the
        model has no counts.
        """
        if f"{BIGRAMS}/starts.npy" not in self.card.files:
            return None
        counted = read_bigrams(self.folder / BIGRAMS)
        if segmentation == "word":
            (counts,) = read_arrays(self.folder, "counts")
            counted = counted.of_words(self.tokens, counts)
        return counted.only(self.rows(segmentation))

    def structure(self, segmentation: str) -> MeasuredStructure | None:
        """Return the sensitivity of the disclosed structure (such as the number of tokens) in
        public texts: how often one replaced word changes it. The result is None if it was not
        measured.
        """
        measured = json.loads((self.folder / "structure.json").read_bytes()).get(segmentation)
        return None if measured is None else MeasuredStructure.model_validate(measured)

    def _tokens(self, segmentation: str) -> list[str]:
        return (
            self.tokens
            if segmentation != "word"
            else [token for token in self.tokens if "_" not in token]
        )
