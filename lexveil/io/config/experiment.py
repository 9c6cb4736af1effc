"""The parameters of an experiment, in params.yaml. A change of a parameter makes the stages that
read it stale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

import yaml
from pydantic import Field, model_validator

from lexveil.base import paths
from lexveil.base.errors import ParameterError
from lexveil.base.levels import SEGMENTATION_OF
from lexveil.base.parameters import Section, of_file, validated
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.config.corpus import (
    CollocationParams,
    CountParams,
    EmbeddingParams,
    ModelParams,
    NeighborhoodParams,
    SampleParams,
    SentenceParams,
    WordOrderParams,
)
from lexveil.io.config.moved import moved_keys
from lexveil.io.config.privacy import (
    CheckParams,
    DeniabilityParams,
    EvaluationParams,
    GridParams,
    MechanismParams,
    PolicyParams,
    ReportParams,
    every_mechanism,
)


@of_file(str(paths.PARAMS))
class Params(Section):
    """The parameters that the results of an experiment depend on."""

    seed: int = Field(
        ge=0,
        le=2**63 - 1,
        description="seed of experiments, whose output is not private; releases draw noise "
        "from the operating system",
    )
    sample: SampleParams = Field(default_factory=SampleParams)
    count: CountParams = Field(default_factory=CountParams)
    collocations: CollocationParams = Field(default_factory=CollocationParams)
    embeddings: EmbeddingParams = Field(default_factory=EmbeddingParams)
    neighborhoods: NeighborhoodParams = Field(default_factory=NeighborhoodParams)
    word_orders: WordOrderParams = Field(default_factory=WordOrderParams)
    sentences: SentenceParams = Field(default_factory=SentenceParams)
    policy: PolicyParams = Field(default_factory=PolicyParams)
    mechanisms: MechanismParams = Field(default_factory=every_mechanism)
    grid: GridParams = Field(default_factory=GridParams)
    deniability: DeniabilityParams = Field(default_factory=DeniabilityParams)
    evaluation: EvaluationParams = Field(default_factory=EvaluationParams)
    checks: CheckParams = Field(default_factory=CheckParams)
    report: ReportParams = Field(default_factory=ReportParams)
    model: ModelParams = Field(default_factory=ModelParams)

    @model_validator(mode="after")
    def _stored(self) -> Self:
        if self.collocations.min_count < self.count.min_count:
            raise ValueError(
                f"collocations.min_count is {self.collocations.min_count}, but "
                "count.min_count stores only n-grams with a count of at least "
                f"{self.count.min_count}; raise the first or lower the second"
            )
        return self

    @model_validator(mode="after")
    def _variants_differ(self) -> Self:
        known: dict[tuple[str, str], str] = {}
        for name in self.grid.mechanisms:
            try:
                section = getattr(self.mechanisms.of_variant(name), base_of(name))
            except ParameterError as error:
                raise ValueError(error.message) from None
            key = (base_of(name), section.model_dump_json())
            if key in known:
                raise ValueError(
                    f"grid.mechanisms has {known[key]} and {name}, which have the same "
                    "parameters; remove one of them"
                )
            known[key] = name
        return self

    @property
    def needed_segmentations(self) -> dict[str, str]:
        """The segmentations for which an embedding must be trained, each with the parameter or the
        part of params.yaml that needs it.
        """
        needed = {
            SEGMENTATION_OF[strategy]: f"strategy {strategy}" for strategy in self.grid.strategies
        }
        needed |= {
            model: "word_orders.models"
            for model in self.word_orders.models
            if model in ("gst", "mst")
        }
        return {"word": "the evaluation"} | needed

    @model_validator(mode="after")
    def _segmented(self) -> Self:
        there = self.grid.segmentations
        needed = self.needed_segmentations
        for name in needed.keys() - set(there):
            listed = ", ".join(name for name in ("word", "gst", "mst") if name in {*there, *needed})
            raise ValueError(
                f"grid.segmentations lacks {name}, but {needed[name]} needs it; write [{listed}]"
            )
        return self


# A file that lacks another section is probably truncated, so it must not run with default values.
MAY_BE_ABSENT = ("sentences", "report", "model")

# The loader of libyaml, which PyYAML may lack, is ten times as fast, and every command reads the
# file.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Pattern of a value that an error message quotes; a single quoted character is not a value.
QUOTED = re.compile(r"'[^']{2,}'")


def load_params(path: Path = paths.PARAMS, advice: str = "run from the project's folder") -> Params:
    """Read and validate a params.yaml.

    Args:
        path: the file.
        advice: advice for a missing file.

    Raises:
        ParameterError: if a key or value is not valid; the message names the key, the expected
            value, and the nearest valid key or value. Also if the file has keys that have moved to
            lexveil.toml.
    """
    try:
        raw = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise ParameterError(f"{path}: the file does not exist; {advice}") from None
    # a date such as 2026-02-30 raises ValueError, not YAMLError
    except (yaml.YAMLError, ValueError) as error:
        raise ParameterError(f"{path}{yaml_problem(error)}") from None
    if moved := moved_keys(raw):
        raise ParameterError(
            f"{path}: {', '.join(moved)} moved to {paths.CONFIGURATION}; "
            "`lexveil init --upgrade` in the project's folder moves them"
        )
    params = parse_params(raw, str(path))
    for name in Params.model_fields:
        if name not in params.model_fields_set and name not in MAY_BE_ABSENT:
            raise ParameterError(
                f"{path}: the section {name} is missing, so the file may be truncated; "
                "restore its last version"
            )
    return params


def parse_yaml(text: str, source: str) -> object:
    """Return the plain values of a YAML text.

    Raises:
        ParameterError: if a key is repeated, because the parser would take the last value.
        yaml.YAMLError: if the text is not YAML.
        ValueError: if a value does not exist, such as the date 2026-02-30.
    """
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        _require_once(node, source)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def yaml_problem(error: Exception) -> str:
    """Return the line and the cause of a YAML error, to be appended to the name of the file.
    The cause quotes no value, because a value may be a password.
    """
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None)
    cause = f" ({QUOTED.sub('a value', problem)})" if problem else ""
    return f"{line}: not valid YAML in UTF-8{cause}"


def _require_once(node: yaml.Node | None, source: str) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _require_once(item, source)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[object, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        first = lines.setdefault(str(key.value), line)
        if first != line:
            raise ParameterError(
                f"{source}, line {line}: the key {key.value} is a duplicate of line "
                f"{first}; combine the two entries"
            )
        _require_once(value, source)


def parse_params(raw: object, source: str = "params") -> Params:
    """Build ``Params`` from plain YAML values; ``source`` names the file in messages."""
    return validated(Params, raw, source)
