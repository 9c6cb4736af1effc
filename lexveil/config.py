"""params.yaml as frozen dataclasses. An unknown or mistyped key is an error that names it."""

from __future__ import annotations

import difflib
import itertools
import re
import types
import typing
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from lexveil import paths
from lexveil.association import MEASURES
from lexveil.errors import ParameterError

T = TypeVar("T")

# NAME@HASH: the first 12 digits of a hash of the model's content.
MODEL = r"own|gst|mst|[a-z0-9][a-z0-9_-]{0,63}@[0-9a-f]{12}"

SCHEDULER = r"(tcp|tls)://([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}"
NOT_TO_PUBLISH_IN = ("artifacts", "data", ".lexveil", ".dvc", ".git")  # each is somebody else's

CLEAN = ("none", "none", 0.0)  # the run that changes nothing, with which the others are compared

Keep = Literal["perturb", "keep", "drop", "sample"]
MechanismName = Literal[
    "madlib", "mahalanobis", "vickrey", "tem", "truncated_gumbel", "diffractor_geometric", "diffractor_tem"
]
StrategyName = Literal["S1", "S2", "S3", "S4"]


@dataclass(frozen=True, slots=True)
class MachineParams:
    """What this machine may use, and who does the work of a stage. No stage declares it: it changes no result.

    ``dask_scheduler``: of executor dask: address of a scheduler, None for a cluster of ``workers`` processes here.
    """

    memory_limit: str
    threads: int
    workers: int
    temp_directory: str = ".lexveil/work"
    executor: Literal["local", "dask"] = "local"
    dask_scheduler: str | None = None

    def alone(self) -> MachineParams:
        """For work so small that handing it out takes longer than doing it."""
        return replace(self, executor="local", workers=1)


@dataclass(frozen=True, slots=True)
class OperationParams:
    """Runs that a schedule starts, and what a run tells whom. No stage declares it: it changes no result.

    ``timeout_minutes``: after which one is stopped, None for never; ``webhook``: http(s) address that is told of a
    failed one, None for nobody; ``openlineage``: a file of this project or the address of a server that takes events,
    None for nowhere.
    """

    timeout_minutes: int | None = 1440
    webhook: str | None = None
    openlineage: str | None = None


@dataclass(frozen=True, slots=True)
class SampleParams:
    """The corpus sample; the weights are of the sources in data/corpus, 1 where a source is not named."""

    max_documents: int
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CountParams:
    """N-grams rarer than this are not stored (they still count in the totals)."""

    min_count: int


@dataclass(frozen=True, slots=True)
class CollocationParams:
    """Which n-grams are collocations, ``min_pmi`` in bits, and the measures that are written beside their counts.

    A threshold that is None asks for nothing.
    """

    min_count: int
    min_pmi: float
    measures: list[Literal["pmi", "npmi", "llr", "t_score"]] = field(default_factory=lambda: ["pmi"])
    min_npmi: float | None = None
    min_llr: float | None = None
    min_t_score: float | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingParams:
    """gensim Word2Vec; ``word_model`` is own, or NAME@HASH of a model that takes the place of the one of words.

    ``normalize``: unit brings every vector to length 1; the unit of every epsilon changes with it.
    """

    dimensions: int
    window: int
    min_count: int
    epochs: int
    negative: int
    skip_gram: bool
    workers: int
    word_model: str = "own"
    normalize: Literal["none", "unit"] = "none"


@dataclass(frozen=True, slots=True)
class NeighborhoodParams:
    """The table of nearest words."""

    neighbors: int
    search: Literal["exact", "pynndescent"]


@dataclass(frozen=True, slots=True)
class WordOrderParams:
    """One-dimensional orders. ``models``: own (each segmentation's own); for words also gst, mst and NAME@HASH."""

    models: list[str]
    sets: list[Literal["L0", "L1", "L2"]]
    search: Literal["exact", "pynndescent"]


@dataclass(frozen=True, slots=True)
class PolicyParams:
    """What happens to each class of token; ``paper`` keeps stop words in S1 and perturbs them elsewhere."""

    stopwords: Literal["paper", "perturb", "keep", "drop", "sample"]
    punctuation: Literal["perturb", "keep", "drop", "sample"]
    oov: Literal["keep", "drop", "sample"]


@dataclass(frozen=True, slots=True)
class MahalanobisParams:
    """``lambda`` in params.yaml; 0 is MADLIB."""

    lambda_: float


@dataclass(frozen=True, slots=True)
class VickreyParams:
    """``t``: one number if ``k`` is 2, else a list of k."""

    t: float | list[float]
    k: int
    exclude_input: bool


@dataclass(frozen=True, slots=True)
class TemParams:
    """``beta``: largest chance of a word beyond the radius."""

    beta: float


@dataclass(frozen=True, slots=True)
class TruncatedGumbelParams:
    """``paper`` takes every epsilon and has no guarantee."""

    calibration: Literal["theorem", "paper"]


@dataclass(frozen=True, slots=True)
class DiffractorGeometricParams:
    """``lists``: which list set, one of those in word_orders.sets."""

    lists: Literal["L0", "L1", "L2"]


@dataclass(frozen=True, slots=True)
class DiffractorTemParams:
    """``lists``: which list set, one of those in word_orders.sets; ``beta`` as for TEM."""

    lists: Literal["L0", "L1", "L2"]
    beta: float


@dataclass(frozen=True, slots=True)
class RankRemapParams:
    """Post-processing of madlib, mahalanobis and vickrey."""

    enabled: bool
    c: float
    ranks: int


@dataclass(frozen=True, slots=True)
class MechanismParams:
    """What each mechanism is built with."""

    mahalanobis: MahalanobisParams
    vickrey: VickreyParams
    tem: TemParams
    truncated_gumbel: TruncatedGumbelParams
    diffractor_geometric: DiffractorGeometricParams
    diffractor_tem: DiffractorTemParams
    rank_remap: RankRemapParams


@dataclass(frozen=True, slots=True)
class GridParams:
    """The runs: every mechanism with every strategy at every base epsilon; the baseline `none` is always made."""

    mechanisms: list[MechanismName]
    strategies: list[StrategyName]
    epsilons: list[float]

    def runs(self) -> list[tuple[str, str, float]]:
        """Mechanism, strategy and base epsilon of every run, in the order of params.yaml."""
        return list(itertools.product(self.mechanisms, self.strategies, self.epsilons))

    def runs_and_clean(self) -> list[tuple[str, str, float]]:
        """The clean baseline, then ``runs``."""
        return [CLEAN, *self.runs()]


@dataclass(frozen=True, slots=True)
class DeniabilityParams:
    """Plausible deniability statistics: how many words, and how often each is drawn."""

    words: int
    draws: int


@dataclass(frozen=True, slots=True)
class EvaluationParams:
    """Utility and attacks: the classifier, how often it is trained, and on what. Similarity and perplexity: of what.

    ``train_share``: of the train split, chosen anew for each training; ``max_classes``: of an attribute;
    ``max_texts``: of a data set, drawn at random, None for all; ``language_model_tokens``: of the corpus, at most;
    ``transformer_model`` and ``gpt2_model``: folders of this machine that hold these models.
    """

    classifier: Literal["linear", "fasttext", "transformer"]
    shuffles: int
    train_share: float
    max_classes: int
    encoder: Literal["tfidf_mean", "minilm"] = "tfidf_mean"
    language_model: Literal["kneser_ney", "gpt2"] = "kneser_ney"
    transformer_model: str | None = None
    gpt2_model: str | None = None
    max_texts: int | None = 1000
    language_model_tokens: int = 5_000_000


@dataclass(frozen=True, slots=True)
class CheckParams:
    """Limits of the expectations."""

    min_coverage: float


@dataclass(frozen=True, slots=True)
class GateParams:
    """What a release must keep to before it appears; a limit that is None asks for nothing.

    ``min_coverage``: share of the words that the vocabulary knows; ``max_unprotected``: share of the tokens kept in
    clear; ``max_length_ratio``: words of a document's output per word of its source; ``pii``: no output may hold what
    looks like an address, a number or a name of a person's account.
    """

    min_coverage: float | None = 0.5
    max_unprotected: float | None = 0.5
    max_length_ratio: float | None = 3.0
    pii: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseParams:
    """Releases and the ledger of what subjects have spent in all of them. No stage declares it: it changes no result.

    ``cap``: epsilon of one subject over all releases, None for no limit; ``ledger``: folder. The rest is of
    `lexveil release`, which is off while ``source`` and ``sql`` are None. ``source``: a folder of files, or a file or
    pattern of files that DuckDB reads; ``sql``: a SELECT in its place, ``attach``: the database it reads;
    ``subject_column``: None for the id's; ``columns``: of the source, published as they are; ``archive``: folder.
    """

    cap: float | None = None
    ledger: str = ".lexveil/ledger"
    keys: Literal["hashed", "plain"] = "hashed"
    on_exhausted: Literal["withhold", "refuse"] = "withhold"
    source: str | None = None
    sql: str | None = None
    attach: str | None = None
    id_column: str = "id"
    text_columns: list[str] = field(default_factory=lambda: ["text"])
    subject_column: str | None = None
    columns: list[str] | None = None
    mechanism: MechanismName = "tem"
    strategy: StrategyName = "S3"
    epsilon: float | None = None
    document_budget: float | None = None
    gate: GateParams = field(default_factory=GateParams)
    archive: str = "releases"


@dataclass(frozen=True, slots=True)
class Params:
    """All of params.yaml."""

    seed: int
    machine: MachineParams
    sample: SampleParams
    count: CountParams
    collocations: CollocationParams
    embeddings: EmbeddingParams
    neighborhoods: NeighborhoodParams
    word_orders: WordOrderParams
    policy: PolicyParams
    mechanisms: MechanismParams
    grid: GridParams
    deniability: DeniabilityParams
    evaluation: EvaluationParams
    checks: CheckParams
    operation: OperationParams = field(default_factory=OperationParams)
    release: ReleaseParams = field(default_factory=ReleaseParams)


# key -> (smallest, largest) allowed value; both ends included.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "machine.threads": (1, 1024),
    "machine.workers": (1, 1024),
    "operation.timeout_minutes": (1, 10**6),
    "release.cap": (1e-9, 999_999_999.0),
    "release.epsilon": (1e-9, 1e9),
    "release.document_budget": (1e-9, 1e9),
    "release.gate.min_coverage": (0.0, 1.0),
    "release.gate.max_unprotected": (0.0, 1.0),
    "release.gate.max_length_ratio": (0.0, 1e6),
    "sample.max_documents": (1, 2**62),
    "sample.weights": (0.0, 1e9),
    "count.min_count": (1, 2**31),
    "collocations.min_count": (1, 2**31),
    **{f"collocations.{measure.threshold}": (measure.low, measure.high) for measure in MEASURES},
    "embeddings.dimensions": (2, 4096),
    "embeddings.window": (1, 100),
    "embeddings.min_count": (1, 2**31),
    "embeddings.epochs": (1, 1000),
    "embeddings.negative": (1, 100),
    "embeddings.workers": (1, 1024),
    "neighborhoods.neighbors": (1, 1000),
    "mechanisms.mahalanobis.lambda": (0.0, 1 - 2**-53),
    "mechanisms.vickrey.t": (0.0, 1.0),
    "mechanisms.vickrey.k": (2, 7),
    "mechanisms.tem.beta": (1e-12, 1 - 2**-53),
    "mechanisms.diffractor_tem.beta": (1e-12, 1 - 2**-53),
    "mechanisms.rank_remap.c": (1e-6, 1e6),
    "mechanisms.rank_remap.ranks": (1, 1000),
    "deniability.words": (1, 100_000),
    "deniability.draws": (2, 10_000),
    "evaluation.shuffles": (1, 1000),
    "evaluation.train_share": (0.01, 1.0),
    "evaluation.max_classes": (2, 100_000),
    "evaluation.max_texts": (1, 2**31),
    "evaluation.language_model_tokens": (1, 10**9),
    "checks.min_coverage": (0.0, 1.0),
}


def load_params(path: Path = paths.PARAMS) -> Params:
    """Read and validate ``path``.

    Raises:
        ParameterError: naming the key, what was expected, and the nearest valid key or value.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(
            f"{path}: there is no such file; run from the project's folder or give --params FILE"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise ParameterError(f"{path}{line}: not valid YAML in UTF-8") from None
    return parse_params(raw, str(path))


def parse_params(raw: object, source: str = "params") -> Params:
    """Build ``Params`` from plain YAML values; ``source`` names the file in messages."""
    params = _build(Params, raw, "", source)
    if "pmi" not in params.collocations.measures:
        raise ParameterError(
            f"{source}: collocations.measures must name pmi, by which sentences are cut; others may stand beside it"
        )
    if params.collocations.min_count < params.count.min_count:
        raise ParameterError(
            f"{source}: collocations.min_count is {params.collocations.min_count}, but count.min_count stores no "
            f"n-gram rarer than {params.count.min_count}; raise the first or lower the second"
        )
    webhook = params.operation.webhook
    if webhook is not None and not re.match(r"https?://[^/]", webhook):
        # Not quoted: such addresses are often secrets.
        raise ParameterError(f"{source}: operation.webhook must be null or an address that starts with http(s)://HOST")
    scheduler = params.machine.dask_scheduler
    if scheduler is not None and not re.fullmatch(SCHEDULER, scheduler):
        raise ParameterError(
            f"{source}: machine.dask_scheduler is {scheduler!r}; it must be the address of a Dask scheduler as "
            "tcp://HOST:PORT or tls://HOST:PORT, or null for a cluster of machine.workers processes on this machine"
        )
    for key, chosen, folder in (
        ("classifier", "transformer", "transformer_model"),
        ("language_model", "gpt2", "gpt2_model"),
    ):
        if getattr(params.evaluation, key) == chosen and not getattr(params.evaluation, folder):
            raise ParameterError(
                f"{source}: evaluation.{key} is {chosen}, but evaluation.{folder} names no folder of its model; "
                "no model is fetched"
            )
    target = params.operation.openlineage
    if target is not None and (not target or ("://" in target and not re.match(r"https?://[^@/]+(/|$)", target))):
        raise ParameterError(
            f"{source}: operation.openlineage must be null, a file, or an address http://HOST:PORT without a key or "
            "password in it (the variable OPENLINEAGE_API_KEY gives a key)"
        )
    _check_release(params.release, source)
    for key, name in [("embeddings.word_model", params.embeddings.word_model)] + [
        (f"word_orders.models[{i}]", name) for i, name in enumerate(params.word_orders.models)
    ]:
        if not re.fullmatch(MODEL, name) or (name in ("gst", "mst") and key == "embeddings.word_model"):
            more = "own" if key == "embeddings.word_model" else "own, gst, mst"
            raise ParameterError(
                f"{source}: {key} is {name!r}; it must be {more}, or NAME@HASH as `lexveil embeddings list` shows it "
                "(the hash stands for the content, so that DVC sees when it changes)"
            )
    return params


def _check_release(release: ReleaseParams, source: str) -> None:
    if release.source is not None and release.sql is not None:
        raise ParameterError(f"{source}: release.source and release.sql are both given; leave one null")
    if release.attach is not None and release.sql is None:
        raise ParameterError(f"{source}: release.attach is a database for release.sql, which is null; write the SELECT")
    is_on = release.source is not None or release.sql is not None
    if is_on and (release.epsilon is None) == (release.document_budget is None):
        raise ParameterError(
            f"{source}: give one of release.epsilon (base epsilon per word) and release.document_budget (budget of "
            "each document); no release has a default for what it spends"
        )
    parts = Path(release.archive).parts
    if not parts or Path(release.archive).is_absolute() or ".." in parts or parts[0] in NOT_TO_PUBLISH_IN:
        raise ParameterError(
            f"{source}: release.archive is {release.archive!r}; it must be a folder of this project outside "
            f"{', '.join(NOT_TO_PUBLISH_IN)}, such as releases"
        )
    named = [release.id_column, *release.text_columns, *(release.columns or [])]
    if len(set(named)) < len(named):
        raise ParameterError(f"{source}: release.id_column, text_columns and columns name a column twice; name it once")
    if release.subject_column in release.text_columns:
        raise ParameterError(f"{source}: release.subject_column is one of release.text_columns, which are rewritten")


def _build(cls: type[T], raw: object, prefix: str, source: str) -> T:
    if not isinstance(raw, dict):
        name = prefix.rstrip(".") or "the file"
        raise ParameterError(f"{source}: {name} must be a mapping of keys to values")
    hints = typing.get_type_hints(cls)
    # A name that Python reserves carries an underscore there: lambda_.
    known = [one.name.rstrip("_") for one in fields(cls)]  # type: ignore[arg-type]
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise ParameterError(f"{source}: unknown key {prefix}{key}; did you mean {prefix}{near[0]}?")
    values: dict[str, Any] = {}
    for known_field in fields(cls):  # type: ignore[arg-type]
        name = known_field.name.rstrip("_")
        key = prefix + name
        if name not in raw:
            if known_field.default is MISSING and known_field.default_factory is MISSING:
                raise ParameterError(f"{source}: {key} is missing")
            continue
        values[known_field.name] = _value(hints[known_field.name], raw[name], key, source)
    return cls(**values)


def _value(kind: Any, raw: object, key: str, source: str) -> Any:
    if is_dataclass(kind):
        return _build(typing.cast(type, kind), raw, key + ".", source)
    origin = typing.get_origin(kind)
    if origin is dict:
        if not isinstance(raw, dict):
            raise ParameterError(f"{source}: {key} must be a mapping of names to values; {{}} is one without any")
        inner = typing.get_args(kind)[1]
        return {
            _value(str, name, f"{key}, a name", source): _value(inner, raw[name], f"{key}.{name}", source)
            for name in raw
        }
    if origin is list:
        if not isinstance(raw, list) or not raw:
            raise ParameterError(f"{source}: {key} must be a list with at least one entry")
        (inner,) = typing.get_args(kind)
        items = [_value(inner, item, f"{key}[{i}]", source) for i, item in enumerate(raw)]
        for i, item in enumerate(items):
            if item in items[:i] and key != "mechanisms.vickrey.t":
                raise ParameterError(f"{source}: {key}[{i}] repeats {item}")
        return items
    if origin is Literal:
        allowed = typing.get_args(kind)
        if raw not in allowed:
            near = difflib.get_close_matches(str(raw), allowed, n=1, cutoff=0.0)
            raise ParameterError(
                f"{source}: {key} is {raw!r}; it must be one of {', '.join(allowed)} (nearest: {near[0]})"
            )
        return raw
    if origin is types.UnionType:  # one value, or a list of them, or nothing
        one, many = typing.get_args(kind)
        if many is types.NoneType:
            return None if raw is None else _value(one, raw, key, source)
        return _value(many if isinstance(raw, list) else one, raw, key, source)
    wanted = {bool: "true or false", int: "a whole number", float: "a number with a decimal point", str: "text"}[kind]
    if kind is float and type(raw) is int and not key.startswith("grid.epsilons"):
        raw = float(raw)
    if type(raw) is not kind:
        why = "; its text becomes a folder name, so write 1.0 and not 1" if key.startswith("grid.epsilons") else ""
        raise ParameterError(f"{source}: {key} is {raw!r}; it must be {wanted}{why}")
    if key.startswith("grid.epsilons") and not 0 < raw < float("inf"):  # type: ignore[operator]
        raise ParameterError(f"{source}: {key} is {raw}; an epsilon must be finite and greater than 0")
    bounded = "sample.weights" if key.startswith("sample.weights.") else key
    if bounded in RANGES:
        low, high = RANGES[bounded]
        if not low <= raw <= high:  # type: ignore[operator]
            raise ParameterError(f"{source}: {key} is {raw}; it must lie between {low:g} and {high:g}")
    return raw
