"""Sources of an embedding model. A source provides words, vectors, collocations and counts. A new
kind of source is one class in this module; ``Model`` never asks which kind of source it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.tables import read_json, require
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.purposes import Purpose
from lexveil.core.embeddings.word_orders import WordLists
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.collocation_tables import collocation_files
from lexveil.io.artifacts.embeddings import (
    BIGRAM_FILES,
    load_bigrams,
    load_embedding,
    load_purposes,
    load_word_orders,
)
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.packaged_model import BIGRAMS, PackagedModel
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.structure import MeasuredStructure, load_structure
from lexveil.io.artifacts.user_lists import purposes_of, require_made_with
from lexveil.io.config import NO_BASE

# Checks that must pass before a vocabulary is used, with the stage of each check.
CHECKED_BY = {
    "corpus.json": "check_corpus",
    "collocations.json": "check_collocations",
    "coverage.json": "check_vocab",
}


class ModelSource(ABC):
    """Source of an embedding model. Its methods take a segmentation: ``word``, ``gst`` or ``mst``.

    Attributes:
        packaged: the packaged model, for functions that copy it; None if the source is another.
    """

    packaged: PackagedModel | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the model, without purposes."""

    @property
    @abstractmethod
    def version(self) -> str | None:
        """The version of the model. The value is None if the model has no version."""

    @property
    @abstractmethod
    def language(self) -> str:
        """The language whose tokenizer rules apply to texts."""

    @property
    @abstractmethod
    def made_of(self) -> str:
        """A phrase that names the public texts or vectors from which the word vectors were made."""

    @property
    @abstractmethod
    def sha256(self) -> str | None:
        """The hash of the whole model. The value is None if only single files have hashes."""

    @property
    @abstractmethod
    def average_words(self) -> float:
        """The mean number of words per public document of the embeddings' corpus; 0 if there are no
        documents.

        Raises:
            MissingArtifactError: if no run has counted the words.
        """

    @abstractmethod
    def require_checks(self) -> None:
        """Check that the artifacts passed their checks.

        Raises:
            MissingArtifactError: if an artifact is missing; the message names the stage that makes
                it.
        """

    @abstractmethod
    def purposes(self, segmentation: str) -> tuple[Purpose, ...]:
        """Return the purposes (preserved word scales) whose axes an embedding was trained with.

        Raises:
            ParameterError: if those purposes differ from the purposes in params.yaml.
            MissingArtifactError: if no run has made the embedding.
        """

    @abstractmethod
    def lexicon(self, segmentation: str) -> Lexicon:
        """Return the lexicon (vocabulary and collocations) of one segmentation.

        Raises:
            MissingArtifactError: if no run has made the lexicon.
        """

    @abstractmethod
    def space(self, segmentation: str) -> WordSpace:
        """Return the embedding of one segmentation.

        Raises:
            MissingArtifactError: if no run has made the embedding.
        """

    @abstractmethod
    def structure(self, segmentation: str) -> MeasuredStructure | None:
        """Return the sensitivity of the disclosed structure (such as the number of tokens) in
        public texts: how often one replaced word changes it. The result is None if it was not
        measured.
        """

    @abstractmethod
    def counts_file(self, segmentation: str) -> Path:
        """Return the file with the number of occurrences of each token of an embedding."""

    @abstractmethod
    def files(self, segmentation: str) -> dict[str, Path]:
        """Return the files of an embedding and of its collocations, by their names in privacy
        records.
        """

    @abstractmethod
    def bigrams(self, segmentation: str) -> Bigrams | None:
        """Return the bigram counts, which state how often each token of an embedding follows
        another. The result is None if the source has no counts.

        Raises:
            MissingArtifactError: if no run has counted the bigrams.
        """

    @abstractmethod
    def bigram_files(self, segmentation: str) -> dict[str, Path]:
        """Return the files of the bigram counts by their names in records. The result is empty if
        the files do not exist.
        """

    @abstractmethod
    def word_lists(self, segmentation: str, name: str) -> tuple[WordLists, dict[str, Path]]:
        """Return the set of word lists L0, L1 or L2, and its files by their names in privacy
        records.

        Raises:
            MissingArtifactError: if no run has made the word lists.
        """

    @abstractmethod
    def near_folder(self, segmentation: str) -> Path | None:
        """Return the folder of the near-word lists (nearest words of each word) of an embedding.
        The result is None if the source has no lists.
        """

    @abstractmethod
    def place(self, segmentation: str) -> Path:
        """Return the path of an embedding's folder, to be named in messages."""

    @property
    @abstractmethod
    def bank_folder(self) -> Path | None:
        """The folder of the sentence bank. The value is None if the source has no sentence bank."""


@dataclass(frozen=True)
class OwnRun(ModelSource):
    """Model source that reads the artifacts of a project's own run.

    Attributes:
        project: the project.
    """

    project: Project

    @property
    def name(self) -> str:  # noqa: D102
        return OWN

    @property
    def version(self) -> str | None:  # noqa: D102
        return None

    @property
    def language(self) -> str:  # noqa: D102
        return self.project.params.model.language

    @property
    def made_of(self) -> str:
        """A phrase that names the corpus of the run, and the packaged model from which its training
        started.
        """
        length = self.project.path(paths.CORPUS_LENGTH)
        n_documents = read_json(length, "sample_corpus")["n_documents"] if length.is_file() else 0
        made_of = f"{n_documents:,} documents of this project's corpus"
        metas = sorted(self.project.path(paths.ARTIFACTS / "embeddings").glob("*/meta.json"))
        bases = [read_json(meta, "train_embeddings").get("base") for meta in metas]
        base = next(filter(None, bases), None)
        if base is None:
            return made_of
        begun = f"the model {base['name']} {base['version']}"
        return f"{made_of} and {begun}, from which training started" if n_documents else begun

    @property
    def sha256(self) -> str | None:  # noqa: D102
        return None

    @property
    def average_words(self) -> float:  # noqa: D102
        length = read_json(self.project.path(paths.CORPUS_LENGTH), "sample_corpus")
        if length["n_documents"]:
            return float(length["n_words"] / length["n_documents"])
        base = find_base(self.project.params.embeddings)
        return base.card.average_words if base else 0.0

    def require_checks(self) -> None:
        """Check that the artifacts passed their checks, by looking for the result file of each
        check. If a check failed, its stage removed that file.
        """
        for check, stage in CHECKED_BY.items():
            require(self.project.path(paths.CHECKS / check), stage)

    def purposes(self, segmentation: str) -> tuple[Purpose, ...]:  # noqa: D102
        named = purposes_of(self.project.params.embeddings.purposes)
        made = load_purposes(segmentation, self.project.folder)
        require_made_with(named, made, paths.embedding(segmentation))
        return named

    def lexicon(self, segmentation: str) -> Lexicon:  # noqa: D102
        return load_lexicon(segmentation, self.project.folder, self.language)

    def space(self, segmentation: str) -> WordSpace:  # noqa: D102
        return load_embedding(segmentation, self.project.folder)

    def structure(self, segmentation: str) -> MeasuredStructure | None:  # noqa: D102
        return load_structure(segmentation, self.project.folder)

    def counts_file(self, segmentation: str) -> Path:  # noqa: D102
        return self.project.path(paths.embedding(segmentation) / "counts.npy")

    def files(self, segmentation: str) -> dict[str, Path]:
        """Return the files of an embedding by name. If training started from a base model, the
        embedding's meta.json is one of them: it has the name and hash of the base model.
        """
        about = () if self.project.params.embeddings.base == NO_BASE else ("meta.json",)
        files = [
            self.project.path(paths.embedding(segmentation) / name)
            for name in ("words.txt", "vectors.npy", *about)
        ]
        for name in () if segmentation == "word" else ("bigrams", "trigrams"):
            files += collocation_files(name, self.project.folder)
        artifacts = self.project.path(paths.ARTIFACTS)
        return {str(file.relative_to(artifacts)): file for file in files}

    def bigrams(self, segmentation: str) -> Bigrams | None:  # noqa: D102
        return load_bigrams(segmentation, self.project.folder)

    def bigram_files(self, segmentation: str) -> dict[str, Path]:  # noqa: D102
        folder = self.project.path(paths.bigrams(segmentation))
        return _all_or_none(
            {f"bigrams/{segmentation}/{name}": folder / name for name in BIGRAM_FILES}
        )

    def word_lists(  # noqa: D102
        self, segmentation: str, name: str
    ) -> tuple[WordLists, dict[str, Path]]:
        folder = self.project.path(paths.word_orders(segmentation, name))
        files = {
            f"word_orders/{segmentation}/{name}/{file}": folder / file
            for file in ("words.txt", "orders.npy")
        }
        return load_word_orders(segmentation, name, self.project.folder), files

    def near_folder(self, segmentation: str) -> Path | None:  # noqa: D102
        return self.project.path(paths.near_lists(segmentation))

    def place(self, segmentation: str) -> Path:  # noqa: D102
        return self.project.path(paths.embedding(segmentation))

    @property
    def bank_folder(self) -> Path | None:  # noqa: D102
        return self.project.path(paths.BANK)


@dataclass(frozen=True)
class PackagedSource(ModelSource):
    """Model source that reads a packaged model. The model was checked when it was built or
    imported.

    Attributes:
        packaged: the packaged model.
    """

    packaged: PackagedModel

    @property
    def name(self) -> str:  # noqa: D102
        return self.packaged.card.name

    @property
    def version(self) -> str | None:  # noqa: D102
        return self.packaged.card.version

    @property
    def language(self) -> str:  # noqa: D102
        return self.packaged.card.language

    @property
    def made_of(self) -> str:
        """A phrase that names the sources of the corpus, with the number of documents from each
        source. For vectors that were trained elsewhere, the phrase names the vectors.
        """
        card = self.packaged.card
        n_documents = sum(source.documents for source in card.sources)
        names = ", ".join(source.name for source in card.sources)
        if not n_documents:
            return f"vectors of {names or 'unknown texts'} ({card.built})"
        of = names if len(card.sources) == 1 else f"{len(card.sources)} sources"
        return f"{n_documents:,} documents of {of} ({card.built})"

    @property
    def sha256(self) -> str | None:
        """The hash of the metadata card, which lists the hashes of all files."""
        return self.packaged.hash

    @property
    def average_words(self) -> float:  # noqa: D102
        return self.packaged.card.average_words

    def require_checks(self) -> None:
        """Check nothing: the model was checked when it was built or imported."""

    def purposes(self, segmentation: str) -> tuple[Purpose, ...]:  # noqa: ARG002
        """Return an empty tuple, because a packaged model is made without axes for purposes."""
        return ()

    def lexicon(self, segmentation: str) -> Lexicon:  # noqa: D102
        return self.packaged.lexicon(segmentation)

    def space(self, segmentation: str) -> WordSpace:  # noqa: D102
        return self.packaged.space(segmentation)

    def structure(self, segmentation: str) -> MeasuredStructure | None:  # noqa: D102
        return self.packaged.structure(segmentation)

    def counts_file(self, segmentation: str) -> Path:  # noqa: ARG002, D102
        return self.packaged.folder / "counts.npy"

    def files(self, segmentation: str) -> dict[str, Path]:  # noqa: D102
        names = ("words.txt", "vectors.npy", "scales.npy")
        return self.packaged.files(*names, *(() if segmentation == "word" else ("pmi.npy",)))

    def bigrams(self, segmentation: str) -> Bigrams | None:  # noqa: D102
        return self.packaged.bigrams(segmentation)

    def bigram_files(self, segmentation: str) -> dict[str, Path]:  # noqa: ARG002, D102
        return _all_or_none(self.packaged.files(*(f"{BIGRAMS}/{name}" for name in BIGRAM_FILES)))

    def word_lists(  # noqa: D102
        self, segmentation: str, name: str
    ) -> tuple[WordLists, dict[str, Path]]:
        files = self.packaged.files(self.packaged.order_file(segmentation))
        return self.packaged.word_lists(segmentation, name), files

    def near_folder(self, segmentation: str) -> Path | None:  # noqa: ARG002, D102
        return None

    def place(self, segmentation: str) -> Path:  # noqa: ARG002, D102
        return self.packaged.folder

    @property
    def bank_folder(self) -> Path | None:  # noqa: D102
        return None


def _all_or_none(files: dict[str, Path]) -> dict[str, Path]:
    return files if all(file.exists() for file in files.values()) else {}
