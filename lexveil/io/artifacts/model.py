"""The embedding model for rewriting: vocabulary, collocations, embedding and mechanisms from a
source, such as a project's run or a packaged model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.record import ModelReference, model_in_words
from lexveil.core.accounting.structure import StructureFigures
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.purposes import Purpose, with_axes
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts.mechanisms import (
    CAUSAL_MODELS,
    CHOSEN_BY,
    CausalModel,
    ModelSpace,
    Prepared,
    prepare,
)
from lexveil.io.artifacts.model_source import ModelSource, OwnRun, PackagedSource
from lexveil.io.artifacts.model_store import DEFAULT, OWN, find
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.user_lists import find_purpose
from lexveil.io.config import Configuration, Params

LOG = logger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Model:
    """Embedding model for rewriting texts, with the folder of the parameters and the ledger.

    Each artifact is read once, when it is first used.

    Attributes:
        project: the project; outside of projects, the user's data folder.
        source: the source of words, vectors, collocations and counts.
        cache_only: whether to read the expected recovery by adversaries only from the cache, and
            never to compute it. The computation takes seconds, which is too long for a service.
        purposes: public word scales to preserve (such as sentiment), whose axes are added to the
            embedding.
        causal_models: causal language models by the parameter value that chooses them; an audit
            replaces them by toy models.
        suppress_language_warning: whether to print no warning about a language, because the warning
            would be a statistic of the texts.
    """

    project: Project
    source: ModelSource
    cache_only: bool = False
    suppress_language_warning: bool = False
    purposes: tuple[Purpose, ...] = ()
    causal_models: Mapping[str, CausalModel] = field(
        default_factory=lambda: CAUSAL_MODELS, repr=False, compare=False
    )
    _lexicons: dict[str, Lexicon] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_run(cls, project: Project, **more: Any) -> Model:
        """Return the model that a project's own run produced."""
        return cls(project, OwnRun(project), **more)

    @classmethod
    def load(cls, project: Path | str | Model | None = None, name: str | None = None) -> Model:
        """Return the model with this name for a project. If ``project`` is a Model, return it
        unchanged.

        Args:
            project: folder of the project. None takes the project around the current folder, or the
                user's data folder if there is no such project.
            name: the name of a packaged model, or ``own`` for the model that the project's run
                made. None takes ``own`` if the project has been run, and otherwise the default
                packaged model; the log then names the model. Purposes follow the name:
                ``en+sentiment=1``, or ``+sentiment`` for the default model.

        Raises:
            RequestError: if no model or purpose has this name, if the name is ``own`` outside of a
                project, or if a purpose scores none of the model's words.
            ParameterError: if the project has no params.yaml, or if params.yaml or lexveil.toml is
                not valid.
        """
        if isinstance(project, Model):
            if name not in (None, project.name):
                raise RequestError(
                    f"model {name}: the argument `project` is already the model "
                    f"{project.name}; give either a Model or a name"
                )
            return project
        home = Project.find(project)
        base, *purposes = (name or "").split("+")
        has_run = home.is_project and home.path(paths.ARTIFACTS / "embeddings").is_dir()
        if base == OWN and not home.is_project:
            raise RequestError(
                f"model {OWN} is the model that a project's run made, but {Path.cwd()} "
                "belongs to no project; change into the folder of a project, make one by "
                "`lexveil init DIR`, or name a model"
            )
        is_own = base == OWN or (not base and has_run)
        source: ModelSource = OwnRun(home)
        if not is_own:
            source = PackagedSource(find(base or DEFAULT))
        model = cls(home, source, purposes=tuple(map(find_purpose, purposes)))
        model.require_purposes()
        if not base:
            _say_chosen(model, is_own=is_own)
        return model

    @property
    def packaged(self) -> PackagedModel | None:
        """The packaged model, for functions that copy it. The value is None if the model has
        another source.
        """
        return self.source.packaged

    @property
    def base_name(self) -> str:
        """The name of the model without its purposes."""
        return self.source.name

    @property
    def name(self) -> str:
        """The name of the model with its purposes, in the form that ``--model`` takes."""
        return "+".join([self.base_name, *map(str, self.purposes)])

    @property
    def weighted_purposes(self) -> list[str]:
        """Each purpose as a text that identifies it: its name, its weight and the SHA-256 of its
        scale.
        """
        return [f"{purpose} {purpose.sha256}" for purpose in self.purposes]

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the purposes and of the metadata card, which lists the hashes of all files. It
        is None for a project's own model.
        """
        whole = self.source.sha256
        if whole is None or not self.purposes:
            return whole
        return hashlib.sha256("\n".join([whole, *self.weighted_purposes]).encode()).hexdigest()

    def kept_purposes(self, strategy: str) -> tuple[Purpose, ...]:
        """Return the purposes (preserved word scales) of the model. For a project's own model, the
        result includes the purposes whose axes the strategy's embedding was trained with.

        Raises:
            ParameterError: if those purposes differ from the purposes in params.yaml.
            MissingArtifactError: if no run has made the embedding.
        """
        return self.source.purposes(SEGMENTATION_OF[strategy]) + self.purposes

    def require_purposes(self) -> None:
        """Check the model's purposes (preserved word scales): none is repeated, and each gives
        different scores to some of the model's words.

        Raises:
            RequestError: if a purpose is repeated or gives all words the same score.
        """
        if not self.purposes:
            return
        names = [purpose.name for purpose in self.kept_purposes("S1")]
        if len({*names}) < len(names):
            raise RequestError(
                f"model {self.name}: a purpose is repeated; give it once, with its weight"
            )
        tokens = self.embedding("S1").tokens
        for purpose in self.purposes:
            if len({*purpose.of(tokens).tolist()}) < 2:
                raise RequestError(
                    f"purpose {purpose.name}: all words of the model have the same score; "
                    "is the scale for another language?"
                )

    @property
    def language(self) -> str:
        """Language whose tokenizer rules apply to texts."""
        return self.source.language

    @property
    def params(self) -> Params:
        """Parameters of the project's experiment; outside of projects, the defaults."""
        return self.project.params

    @property
    def configuration(self) -> Configuration:
        """Settings of the project; outside of projects, the defaults."""
        return self.project.configuration

    def path(self, relative: Path | str) -> Path:
        """Return a path inside the project's folder or the user's data folder.

        Args:
            relative: a relative path of the settings or of ``lexveil.base.paths``.
        """
        return self.project.path(relative)

    @property
    def version(self) -> str | None:
        """The version of a packaged model. The value is None for a project's own model."""
        return self.source.version

    @property
    def made_of(self) -> str:
        """A phrase that names the public texts or vectors from which the word vectors were made."""
        return self.source.made_of

    @property
    def described(self) -> str:
        """A phrase for the log that names the model, its version, and the texts or vectors from
        which the model was made.
        """
        return model_in_words(self.name, self.version, self.made_of)

    def reference(self, strategy: str) -> ModelReference:
        """Return the reference to this model for privacy records. The reference has the hash of the
        metadata card or, for a project's own model, a hash over the hashes of its artifacts.
        """
        digest = self.sha256
        if digest is None:
            listed = json.dumps(self.hashes(strategy), sort_keys=True)
            digest = hashlib.sha256(listed.encode()).hexdigest()
        return ModelReference(
            name=self.name, version=self.version, made_of=self.made_of, sha256=digest
        )

    def require_checks(self, strategy: str) -> None:
        """Check that the artifacts of a strategy exist and passed their checks.

        Raises:
            MissingArtifactError: if an artifact is missing; the message names the stage that makes
                it.
        """
        self.lexicon(strategy)
        self.source.require_checks()

    def lexicon(self, strategy: str) -> Lexicon:
        """Return the lexicon (vocabulary and collocations) for the texts of a strategy.

        Raises:
            MissingArtifactError: if no run has made the lexicon.
        """
        segmentation = SEGMENTATION_OF[strategy]
        if segmentation not in self._lexicons:
            self._lexicons[segmentation] = self.source.lexicon(segmentation)
        return self._lexicons[segmentation]

    def average_words(self) -> float:
        """Return the mean number of words per document of the public corpus of the embeddings. If
        this mean is not known, return the mean of the base model's corpus.

        The result is 0 if there are no documents and no base model.

        Raises:
            MissingArtifactError: if no run has counted the words.
        """
        return self.source.average_words

    def structure(self, strategy: str, policy: Policy) -> StructureFigures | None:
        """Return the sensitivity of the disclosed structure (such as the number of tokens) in
        public texts: how often one replaced word changes it. The result is None if it was not
        measured.
        """
        measured = self.source.structure(SEGMENTATION_OF[strategy])
        return None if measured is None else measured.figures(strategy, policy)

    def embedding(self, strategy: str) -> WordSpace:
        """Return the embedding for the strategy's segmentation, with an axis for each purpose
        (preserved word scale).

        Raises:
            MissingArtifactError: if no run has made the embedding.
        """
        return with_axes(self.source.space(SEGMENTATION_OF[strategy]), self.purposes)

    def bigram_files(self, strategy: str) -> dict[str, Path]:
        """Return the files of the bigram counts for the strategy's tokens, by name. The result is
        empty if there are no counts.
        """
        return self.source.bigram_files(SEGMENTATION_OF[strategy])

    def bigrams(self, strategy: str) -> Bigrams | None:
        """Return the bigram counts for the strategy's tokens. The result is None if there are no
        counts.
        """
        if not self.bigram_files(strategy):
            return None
        return self.source.bigrams(SEGMENTATION_OF[strategy])

    def of_variant(self, name: str) -> Model:
        """Return this model with the parameters of a variant of a mechanism.

        Args:
            name: name of the variant in the grid of runs.
        """
        mechanisms = self.params.mechanisms.of_variant(name)
        params = self.params.model_copy(update={"mechanisms": mechanisms})
        return replace(self, project=replace(self.project, params=params))

    def mechanism(self, name: str, strategy: str, policy: Policy) -> Prepared:
        """Return a mechanism over the words of the strategy's embedding.

        Raises:
            MissingArtifactError: if no run has made the embedding or the word orders.
            ParameterError: if a parameter does not suit the mechanism or the words.
            RequestError: if the model has purposes and the mechanism works on word orders, which
                have no axes for purposes.
        """
        space = ModelSpace(
            SEGMENTATION_OF[strategy],
            self.embedding(strategy),
            policy,
            self.source,
            self.causal_model(name),
            self.purposes,
        )
        return prepare(name, space, self.params.mechanisms)

    def causal_model(self, mechanism: str) -> CausalModel | None:
        """Return the causal language model that weights output words for a mechanism. The result is
        None if the mechanism uses no language model.

        Raises:
            RequestError: if the language of the language model is not the language of the words.
        """
        chosen: str = getattr(getattr(self.params.mechanisms, mechanism), "model", "")
        causal = self.causal_models.get(chosen)
        if causal is not None and causal.language != self.language:
            raise RequestError(
                f"params.yaml: {CHOSEN_BY} is {chosen}, a language model of the language "
                f"{causal.language}, but model {self.name} has words of the language "
                f"{self.language}; write bigrams"
            )
        return causal

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:  # noqa: ARG002
        """Return the result of ``make``, which depends on public data alone. The result is computed
        once for each key, and reused for all requests that the model answers.
        """
        return make()

    def hashes(self, strategy: str) -> dict[str, str]:
        """Return the SHA-256 of the embedding and of the collocations of a strategy, by file
        name.
        """
        files = self.source.files(SEGMENTATION_OF[strategy])
        weighed = {f"purposes/{purpose}": purpose.sha256 for purpose in self.purposes}
        return {name: sha256(file) for name, file in files.items()} | weighed


def _say_chosen(model: Model, *, is_own: bool) -> None:
    """Log the name of the model that was chosen by default, and the reason for the choice."""
    why = f"{Path.cwd()} belongs to no project"
    if is_own:
        why = "a run of this project made it"
    elif model.project.is_project:
        why = "no run of this project has made a model"
    ships = "" if is_own else ", which is packaged with Lexveil"
    LOG.info(
        f"using the {model.described}{ships}, because {why} (--model, or model=, names "
        "another model)"
    )
