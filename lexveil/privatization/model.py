"""What texts are rewritten with, loaded from a project's folder: vocabulary, collocations, embeddings, mechanisms."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.guarantee import StructureFigures
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.mechanisms import Prepared, prepare
from lexveil.artifacts.structure import load_structure
from lexveil.config import Params, load_params
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import require
from lexveil.text.encode import Lexicon

# What must have passed before a vocabulary is used, and the stage that checks it.
CHECKED_BY = {"corpus.json": "check_corpus", "collocations.json": "check_collocations", "coverage.json": "check_vocab"}


@dataclass(frozen=True, slots=True)
class Model:
    """The artifacts and defaults of one project. Each artifact is read once, when it is first used.

    Attributes:
        project: the folder with params.yaml and artifacts/; ``Path()`` is the current one.
        params: its params.yaml.
    """

    project: Path
    params: Params
    _lexicons: dict[str, Lexicon] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, project: Path | str | Model | None = None) -> Model:
        """The model of a project's folder, by default of the current one; a model is given back as it is.

        Raises:
            ParameterError: if there is no params.yaml, or it is not valid.
        """
        if isinstance(project, Model):
            return project
        folder = Path(project or "")
        return cls(folder, load_params(folder / paths.PARAMS))

    def path(self, relative: Path | str) -> Path:
        """A path of the project, as params.yaml and ``lexveil.paths`` give it."""
        return self.project / relative

    def require_checks(self, strategy: str) -> None:
        """See that the artifacts exist and passed their checks. A check that fails removes its result.

        Raises:
            MissingArtifact: naming the stage that makes what is missing.
        """
        self.lexicon(strategy)
        for check, stage in CHECKED_BY.items():
            require(self.path(paths.CHECKS / check), stage)

    def lexicon(self, strategy: str) -> Lexicon:
        """What the texts of a strategy are looked up in.

        Raises:
            MissingArtifact: if no run has made it.
        """
        segmentation = SEGMENTATION_OF[strategy]
        if segmentation not in self._lexicons:
            self._lexicons[segmentation] = load_lexicon(segmentation, self.project)
        return self._lexicons[segmentation]

    def average_words(self) -> float:
        """Words per document of the public corpus that the embeddings are trained on; 0 if it has no documents.

        Raises:
            MissingArtifact: if no run has counted them.
        """
        length = json.loads(require(self.path(paths.CORPUS_LENGTH), "sample_corpus").read_text(encoding="utf-8"))
        return float(length["n_words"] / length["n_documents"]) if length["n_documents"] else 0.0

    def structure(self, strategy: str, policy: Policy) -> StructureFigures | None:
        """How often one other word changes the structure of public texts; None where no run has measured it."""
        measured = load_structure(strategy, self.project)
        if measured is None:
            return None
        change, source = measured.change(strategy, policy)
        return StructureFigures(
            source=source,
            texts=measured.texts,
            replacements=measured.replacements,
            number_changed=change.number.share,
            pattern_changed=change.pattern.share,
            structure_changed=change.structure.share,
        )

    def mechanism(self, name: str, strategy: str, policy: Policy) -> Prepared:
        """A mechanism over the words of the strategy's embedding.

        Raises:
            MissingArtifact: if no run has made the embedding or the word orders.
            ParameterError: if a parameter does not suit the mechanism or the words.
        """
        segmentation = SEGMENTATION_OF[strategy]
        embedding = load_embedding(segmentation, self.project)
        return prepare(name, segmentation, embedding, policy, self.params.mechanisms, self.project)

    def hashes(self, strategy: str) -> dict[str, str]:
        """The sha256 of the embedding and the collocations of a strategy, by the names of their files."""
        segmentation = SEGMENTATION_OF[strategy]
        files = [paths.embedding(segmentation) / name for name in ("words.txt", "vectors.npy")]
        if segmentation != "word":
            files += [paths.COLLOCATIONS / name for name in ("bigrams.parquet", "trigrams.parquet")]
        return {str(file.relative_to(paths.ARTIFACTS)): sha256(self.path(file)) for file in files}
