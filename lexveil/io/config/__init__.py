"""Models of params.yaml, on which the results of an experiment depend (``Params``), and of
lexveil.toml, on which no result depends (``Configuration``). The type, default, range and meaning
of each key are defined at its field only.
"""

from lexveil.io.config.configuration import Configuration, load_configuration, parse_configuration
from lexveil.io.config.corpus import (
    NO_BASE,
    CollocationParams,
    EmbeddingParams,
    ModelParams,
    SampleParams,
    SentenceParams,
)
from lexveil.io.config.experiment import LOADER, Params, load_params, parse_params
from lexveil.io.config.operation import (
    DetectionParams,
    GateParams,
    InboxParams,
    LedgerParams,
    MachineParams,
    ShareParams,
)
from lexveil.io.config.privacy import (
    CLEAN,
    EvaluationParams,
    GridParams,
    MechanismParams,
    PolicyParams,
    ReportParams,
)

__all__ = [
    "CLEAN",
    "LOADER",
    "NO_BASE",
    "CollocationParams",
    "Configuration",
    "DetectionParams",
    "EmbeddingParams",
    "EvaluationParams",
    "GateParams",
    "GridParams",
    "InboxParams",
    "LedgerParams",
    "MachineParams",
    "MechanismParams",
    "ModelParams",
    "Params",
    "PolicyParams",
    "ReportParams",
    "SampleParams",
    "SentenceParams",
    "ShareParams",
    "load_configuration",
    "load_params",
    "parse_configuration",
    "parse_params",
]
