"""params.yaml as frozen dataclasses. An unknown or mistyped key is an error that names it."""

from __future__ import annotations

import difflib
import types
import typing
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from tasks.errors import ParameterError
from tasks.io import paths

T = TypeVar("T")

Keep = Literal["perturb", "keep", "drop", "sample"]


@dataclass(frozen=True, slots=True)
class MachineParams:
    """What this machine may use. No stage declares it: it changes no result."""

    memory_limit: str
    threads: int
    workers: int


@dataclass(frozen=True, slots=True)
class SampleParams:
    """The corpus sample."""

    max_documents: int


@dataclass(frozen=True, slots=True)
class CountParams:
    """N-grams rarer than this are not stored (they still count in the totals)."""

    min_count: int


@dataclass(frozen=True, slots=True)
class CollocationParams:
    """Which n-grams are collocations; ``min_pmi`` in bits."""

    min_count: int
    min_pmi: float


@dataclass(frozen=True, slots=True)
class EmbeddingParams:
    """gensim Word2Vec."""

    dimensions: int
    window: int
    min_count: int
    epochs: int
    negative: int
    skip_gram: bool
    workers: int


@dataclass(frozen=True, slots=True)
class NeighborhoodParams:
    """The table of nearest words."""

    neighbors: int
    search: Literal["exact", "pynndescent"]


@dataclass(frozen=True, slots=True)
class PolicyParams:
    """What happens to each class of token; ``paper`` keeps stop words in S1 and perturbs them elsewhere."""

    stopwords: Literal["paper", "perturb", "keep", "drop", "sample"]
    punctuation: Literal["perturb", "keep", "drop", "sample"]
    oov: Literal["keep", "drop", "sample"]


@dataclass(frozen=True, slots=True)
class GridParams:
    """The runs: every mechanism with every strategy at every base epsilon; the baseline `none` is always made."""

    mechanisms: list[Literal["madlib"]]
    strategies: list[Literal["S1", "S2", "S3", "S4"]]
    epsilons: list[float]


@dataclass(frozen=True, slots=True)
class CheckParams:
    """Limits of the expectations."""

    min_coverage: float


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
    policy: PolicyParams
    grid: GridParams
    checks: CheckParams


# key -> (smallest, largest) allowed value; both ends included.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "machine.threads": (1, 1024),
    "machine.workers": (1, 1024),
    "sample.max_documents": (1, 2**62),
    "count.min_count": (1, 2**31),
    "collocations.min_count": (1, 2**31),
    "collocations.min_pmi": (-1000.0, 1000.0),
    "embeddings.dimensions": (2, 4096),
    "embeddings.window": (1, 100),
    "embeddings.min_count": (1, 2**31),
    "embeddings.epochs": (1, 1000),
    "embeddings.negative": (1, 100),
    "embeddings.workers": (1, 1024),
    "neighborhoods.neighbors": (1, 1000),
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
    if params.collocations.min_count < params.count.min_count:
        raise ParameterError(
            f"{source}: collocations.min_count is {params.collocations.min_count}, but count.min_count stores no "
            f"n-gram rarer than {params.count.min_count}; raise the first or lower the second"
        )
    return params


def _build(cls: type[T], raw: object, prefix: str, source: str) -> T:
    if not isinstance(raw, dict):
        name = prefix.rstrip(".") or "the file"
        raise ParameterError(f"{source}: {name} must be a mapping of keys to values")
    hints = typing.get_type_hints(cls)
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise ParameterError(f"{source}: unknown key {prefix}{key}; did you mean {prefix}{near[0]}?")
    values: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        key = prefix + field.name
        if field.name not in raw:
            if field.default is MISSING:
                raise ParameterError(f"{source}: {key} is missing")
            continue
        values[field.name] = _value(hints[field.name], raw[field.name], key, source)
    return cls(**values)


def _value(kind: Any, raw: object, key: str, source: str) -> Any:
    if is_dataclass(kind):
        return _build(typing.cast(type, kind), raw, key + ".", source)
    origin = typing.get_origin(kind)
    if origin is list:
        if not isinstance(raw, list) or not raw:
            raise ParameterError(f"{source}: {key} must be a list with at least one entry")
        (inner,) = typing.get_args(kind)
        items = [_value(inner, item, f"{key}[{i}]", source) for i, item in enumerate(raw)]
        for i, item in enumerate(items):
            if item in items[:i]:
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
    if origin is types.UnionType:  # pragma: no cover - no such key yet
        raise TypeError(f"unsupported type of {key}")
    wanted = {bool: "true or false", int: "a whole number", float: "a number with a decimal point", str: "text"}[kind]
    if kind is float and type(raw) is int and not key.startswith("grid.epsilons"):
        raw = float(raw)
    if type(raw) is not kind:
        why = "; its text becomes a folder name, so write 1.0 and not 1" if key.startswith("grid.epsilons") else ""
        raise ParameterError(f"{source}: {key} is {raw!r}; it must be {wanted}{why}")
    if key.startswith("grid.epsilons") and not 0 < raw < float("inf"):  # type: ignore[operator]
        raise ParameterError(f"{source}: {key} is {raw}; an epsilon must be finite and greater than 0")
    if key in RANGES:
        low, high = RANGES[key]
        if not low <= raw <= high:  # type: ignore[operator]
            raise ParameterError(f"{source}: {key} is {raw}; it must lie between {low:g} and {high:g}")
    return raw
