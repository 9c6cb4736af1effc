"""Parameters of the rewriting of texts, of the runs of the grid, and of the evaluation of the
runs.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from lexveil.base.errors import ParameterError
from lexveil.base.levels import BaseEpsilon, GridRun, NoiseSetting, RecoveryTarget, parse_noise
from lexveil.base.parameters import (
    Documented,
    ListFile,
    Section,
    Several,
    nearest,
    refused,
    validated,
)
from lexveil.core.mechanisms import mechanism_names
from lexveil.core.mechanisms.variants import base_of, changed_parameters
from lexveil.core.protection import LEVELS
from lexveil.io.request import (
    SENTENCES,
    BandName,
    PunctuationAction,
    StopwordAction,
    StrategyName,
    UnknownAction,
    as_requested,
)


def _variant(name: str) -> str:
    if base_of(name) not in mechanism_names():
        names = mechanism_names()
        raise refused(
            f"it must be one of {', '.join(names)}, or a variant of a mechanism, such as "
            f"vickrey-t0.25 (nearest: {nearest(base_of(name), names)})"
        )
    return name


VariantName = Annotated[str, AfterValidator(_variant)]
CLEAN: GridRun = ("none", "none", BaseEpsilon(0.0))  # the baseline run that changes nothing


def _grid_noise(raw: object) -> NoiseSetting:
    if isinstance(raw, BaseEpsilon | RecoveryTarget):
        return raw
    if isinstance(raw, str):
        with contextlib.suppress(ValueError):
            noise = parse_noise(raw)
            if noise.is_level:
                return noise
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise refused("it must be a number, such as 10, or a level of recovery, such as r0.2")
    if not 0 < raw <= sys.float_info.max:
        raise refused("it must be finite and greater than 0")
    return BaseEpsilon(raw)


def _parameter(noise: NoiseSetting) -> float | str:
    return noise.parameter


GridNoise = Annotated[
    NoiseSetting,
    PlainValidator(_grid_noise, json_schema_input_type=float),
    PlainSerializer(_parameter, when_used="always"),
]


def _sentence_target(raw: object) -> RecoveryTarget:
    noise = _grid_noise(raw) if isinstance(raw, str) else raw
    shares = {RecoveryTarget(share.content): name for name, share in LEVELS.items()}
    target = next((one for one in shares if one == noise), None)
    if target is None:
        listed = ", ".join(f"{share} ({name})" for share, name in shares.items())
        raise refused(
            f"it must be one of {listed}, which are levels of protection of the project's bank"
        )
    return target


SentenceTarget = Annotated[
    RecoveryTarget,
    PlainValidator(_sentence_target, json_schema_input_type=str),
    PlainSerializer(_parameter, when_used="always"),
]


def _of_words(raw: object) -> object:
    """Raise an error if the value is the strategy of sentences (S5). The message names the
    parameter for its runs.
    """
    if raw == SENTENCES:
        raise refused(
            f"strategy {SENTENCES} writes sentences of a bank, and in the grid by tem alone; "
            f"give its runs by grid.sentences, such as [r0.2, r0.5], and remove {SENTENCES} from "
            "this list"
        )
    return raw


GridStrategy = Annotated[StrategyName, BeforeValidator(_of_words)]


class PolicyParams(Documented):
    """Policy: the treatment of each class of tokens. A kept token appears unchanged in the output
    and counts as unprotected.
    """

    stopwords: StopwordAction = as_requested("stopwords", "paper")
    punctuation: PunctuationAction = as_requested("punctuation", "keep")
    oov: UnknownAction = as_requested("oov", "sample")


class MechanismParams(Section):
    """Parameters of the mechanisms. There is a section for each registered mechanism, and the
    section ``rank_remap``.
    """

    def of_variant(self, name: str) -> Self:
        """Return a copy of the parameters in which a variant of a mechanism has its own values.

        Args:
            name: name of a mechanism, or of a variant (``lexveil.core.mechanisms.variants``).

        Raises:
            ParameterError: if the name contains an unknown parameter of the mechanism, or a value
                that is not valid for the parameter.
        """
        base = base_of(name)
        section = getattr(self, base)
        fields = type(section).model_fields
        names = [field.alias or key for key, field in fields.items()]
        try:
            changed = changed_parameters(name, names)
        except ValueError as error:
            raise ParameterError(f"grid.mechanisms: {name}: {error}") from None
        if not changed:
            return self
        given = section.model_dump(by_alias=True) | changed
        of_variant = validated(
            type(section), given, named=lambda key: f"grid.mechanisms: {name}: {key}"
        )
        return self.model_copy(update={base: of_variant})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def resolved(cls) -> type[Section]:
        """Return the pydantic model with the sections of all registered mechanisms."""
        return _mechanism_sections()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(_mechanism_sections()) if cls is MechanismParams else handler(source)

    def __reduce__(self) -> tuple[Any, ...]:
        return _mechanism_params, (self.model_dump(),)


@cache
def _mechanism_sections() -> type[MechanismParams]:
    from lexveil.core.mechanisms.rank_remap import RankRemapParameters
    from lexveil.core.mechanisms.registry import MECHANISMS

    models = {name: mechanism.Parameters for name, mechanism in MECHANISMS.items()}
    sections: dict[str, Any] = {
        name: (model, Field(default_factory=model))
        for name, model in (models | {"rank_remap": RankRemapParameters}).items()
    }
    return create_model("MechanismSections", __base__=MechanismParams, **sections)


def every_mechanism() -> MechanismParams:
    """Return the sections of all mechanisms with their defaults."""
    return _mechanism_sections()()


def _mechanism_params(values: dict[str, object]) -> MechanismParams:
    return _mechanism_sections().model_validate(values, by_name=True)


class GridParams(Documented):
    """Grid of the experiment's runs: every mechanism and strategy at every base epsilon and
    recovery level. The baseline `none` is always run.
    """

    mechanisms: Several[VariantName] = ["madlib", "tem", "diffractor_geometric"]
    """registered mechanisms, or variants of a mechanism, which are named by the parameters that
    differ from its section under `mechanisms`: vickrey-t0.25, diffractor_geometric-listsL1"""
    strategies: Several[GridStrategy] = ["S1", "S3"]
    """strategies, each of which cuts texts into tokens and allocates budgets"""
    segmentations: Several[Literal["word", "gst", "mst"]] = ["word", "gst"]
    """segmentations of the corpus, each with an embedding: the segmentations that the strategies
    need (S1 word, S2 and S3 gst, S4 mst), and word, which the comparison of texts needs;
    package_model needs gst"""
    epsilons: Several[GridNoise] = [
        RecoveryTarget(0.2),
        RecoveryTarget(0.5),
        BaseEpsilon(10.0),
    ]
    """noise of the runs: a base epsilon per word, or a level such as r0.2, which is the share of
    the words of recovery_band that an adversary is expected to name, by public counts; the
    epsilon of a level is computed for each mechanism and strategy"""
    sentences: list[SentenceTarget] = [RecoveryTarget(0.2), RecoveryTarget(0.5)]
    """runs of tem in strategy S5, which replaces texts by sentences of the project's bank, at
    levels of protection: r0.05 strong, r0.2 balanced, r0.5 light; []: no runs"""
    recovery_band: BandName = "content"
    """words for which a level of recovery holds: content (all but function words), all,
    function, frequent, middle, rare"""
    budget: Literal["document", "token"] = "document"
    """meaning of a base epsilon. "document": each text has a budget of base epsilon times the
    words per text, which its tokens share; "token": each perturbed token has that epsilon,
    however long its text is, as at a level"""

    def is_per_token(self, noise: NoiseSetting) -> bool:
        """Return whether the runs with this noise give every perturbed token the same epsilon."""
        return self.budget == "token" or noise.is_level

    @property
    def base_epsilons(self) -> list[BaseEpsilon]:
        """The base epsilons among ``epsilons``."""
        return [noise for noise in self.epsilons if not noise.is_level]

    @property
    def levels(self) -> list[RecoveryTarget]:
        """The recovery levels among ``epsilons``."""
        return [noise for noise in self.epsilons if noise.is_level]

    def runs(self) -> list[GridRun]:
        """Return the mechanism, strategy and noise setting of every run of the grid, in the order
        of params.yaml.
        """
        return list(itertools.product(self.mechanisms, self.strategies, self.epsilons))

    def sentence_runs(self) -> list[tuple[str, str, RecoveryTarget]]:
        """Return the mechanism, strategy and recovery level of every run that replaces texts by
        sentences.
        """
        return [("tem", SENTENCES, level) for level in dict.fromkeys(self.sentences)]


class DeniabilityParams(Documented):
    """Parameters of the plausible deniability statistics N_w and S_w, which are computed for every
    mechanism at every epsilon of the grid.
    """

    words: int = Field(100, ge=1, le=100_000)
    """number of words, drawn at random; the words are the same for all mechanisms"""
    draws: int = Field(100, ge=2, le=10_000)
    """number of draws of each word"""


class EvaluationParams(Documented):
    """Parameters of the evaluation of each run's texts: utility, attacks, similarity and
    perplexity.
    """

    classifier: Literal["linear", "fasttext", "transformer"] = "linear"
    """classifier of the utility and the attacks: TF-IDF and logistic regression, fastText, or a
    fine-tuned transformer"""
    shuffles: int = Field(3, ge=1, le=1000)
    """number of trainings, over which mean and standard deviation are computed"""
    train_share: float = Field(0.9, ge=0.01, le=1)
    """share of the train split that each training uses, chosen and ordered at random"""
    max_classes: int = Field(10, ge=2, le=100_000)
    """number of classes of an attribute to predict, the most frequent ones"""
    encoder: Literal["tfidf_mean", "minilm"] = "tfidf_mean"
    """encoder of the texts that are compared: weighted means of word vectors, or MiniLM"""
    language_model: Literal["kneser_ney", "gpt2"] = "kneser_ney"
    """language model that computes perplexity: n-grams of the corpus, or GPT-2"""
    reader: Literal["ngrams", "smollm2"] = "ngrams"
    """strongest adversary for measured recovery: n-grams of the corpus, or the n-grams and also
    SmolLM2"""
    transformer_model: str | None = None
    """folder of a model in the format of transformers"""
    gpt2_model: str | None = None
    """folder of GPT-2 in the format of transformers; no model is downloaded"""
    max_texts: int | None = Field(300, ge=1, le=2**31)
    """number of texts of a data set for similarity, perplexity and recovery, drawn at random;
    null: all"""
    language_model_tokens: int = Field(5_000_000, ge=1, le=10**9)
    """largest number of tokens of the corpus that the language model is trained on"""
    sensitive: ListFile | None = None
    """file of sensitive words, one per line, as FILE@HASH; their recovery is measured
    separately; null: no file"""

    @model_validator(mode="after")
    def _models_are_there(self) -> Self:
        for key, chosen, folder in (
            ("classifier", "transformer", "transformer_model"),
            ("language_model", "gpt2", "gpt2_model"),
        ):
            if getattr(self, key) == chosen and not getattr(self, folder):
                raise ValueError(
                    f"evaluation.{key} is {chosen}, but evaluation.{folder} names no folder "
                    "of its model; name the folder, because no model is downloaded"
                )
        if self.reader != "ngrams" and self.language_model != "kneser_ney":
            raise ValueError(
                f"evaluation.reader is {self.reader}, which also needs the n-grams of the "
                "corpus; set evaluation.language_model to kneser_ney"
            )
        return self


class CheckParams(Documented):
    """Limits that the checks of stages apply to their outputs."""

    min_coverage: float = Field(0.5, ge=0, le=1)
    """smallest share of the words of a document set that the vocabulary must have"""


class ReportParams(Documented):
    """Parameters of the report's contents besides figures."""

    samples: int | None = Field(None, ge=0, le=100)
    """number of texts that the report shows with the output of every run; the number is your
    consent to show source text; null: 3 of the embedded documents, and none of your own
    documents"""
