"""The settings of lexveil.toml. These settings change no result of a stage."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from lexveil.base import paths
from lexveil.base.errors import ParameterError
from lexveil.base.levels import SEGMENTATION_OF
from lexveil.base.parameters import Section, of_file, validated
from lexveil.io.config.experiment import Params
from lexveil.io.config.operation import (
    DetectionParams,
    InboxParams,
    LedgerParams,
    MachineParams,
    OperationParams,
    ReleaseParams,
)


@of_file(str(paths.CONFIGURATION))
class Configuration(Section):
    """Settings of this machine and of releases, as lexveil.toml has them. The settings change no
    result of a stage, and a change of a setting makes no stage stale. A setting that is left out
    has its default.
    """

    machine: MachineParams = Field(default_factory=MachineParams)
    operation: OperationParams = Field(default_factory=OperationParams)
    ledger: LedgerParams = Field(default_factory=LedgerParams)
    release: ReleaseParams = Field(default_factory=ReleaseParams)
    detection: DetectionParams = Field(default_factory=DetectionParams)
    inbox: InboxParams = Field(default_factory=InboxParams)

    def changed(self, **sections: Mapping[str, object]) -> Configuration:
        """Return a copy of the configuration in which some keys have other values, given by
        section. The values are not validated.
        """
        updated = {
            name: getattr(self, name).model_copy(update=values) for name, values in sections.items()
        }
        return self.model_copy(update=updated)

    def require_segmentation(self, params: Params) -> None:
        """Check that the experiment makes the embedding that is needed for releases of the inbox
        (the configured source of texts).

        Raises:
            ParameterError: if the experiment does not make that embedding.
        """
        segmentation = SEGMENTATION_OF.get(self.inbox.strategy)
        there = params.grid.segmentations
        if not self.inbox.is_on or segmentation is None or segmentation in there:
            return
        listed = ", ".join([*there, segmentation])
        raise ParameterError(
            f"{paths.CONFIGURATION}: inbox.strategy is {self.inbox.strategy}, which needs the "
            f"segmentation {segmentation}; write grid.segmentations: [{listed}] into {paths.PARAMS}"
        )


def load_configuration(path: Path = paths.CONFIGURATION) -> Configuration:
    """Read and validate a lexveil.toml. If there is no file, every key has its default.

    Raises:
        ParameterError: if a key or value is not valid; the message names the section, the key, the
            expected value, and the nearest valid key or value.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Configuration()
    except ValueError:
        raise ParameterError(f"{path}: not valid TOML in UTF-8") from None
    return parse_configuration(_parsed(content, path), str(path))


def parse_configuration(raw: object, source: str = "configuration") -> Configuration:
    """Build a ``Configuration`` from plain values; ``source`` names the file in messages."""
    return validated(Configuration, raw, source)


def _parsed(content: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = f", line {found[1]}" if found else ""
        # Do not quote the parser's message: it can contain a value, and an address may be a secret.
        raise ParameterError(
            f"{path}{line}: not valid TOML (write text in quotes, a list in brackets, and "
            "each key once; TOML has no null, so omit a key in place of null)"
        ) from None
