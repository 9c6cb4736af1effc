"""Variants of a mechanism: an experiment grid can contain one mechanism several times, with
different parameters.

The name of a variant contains the parameters that differ from the mechanism's own section of
params.yaml: ``vickrey-t0.25`` is vickrey with t = 0.25, ``tem-length_penalty0-beta0.01`` has two
other parameters. So the name describes the variant completely, in files, stages and the report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

SEPARATOR = "-"
VALUE = re.compile(r"[A-Za-z0-9_.]+")  # characters that are allowed in a file name


def base_of(name: str) -> str:
    """Return the mechanism's name within the name of a variant. The name of a mechanism is
    returned unchanged.
    """
    return name.partition(SEPARATOR)[0]


def changed_parameters(name: str, parameters: Sequence[str]) -> dict[str, object]:
    """Return the parameters that a variant changes from the mechanism's own, with their values;
    empty for the name of a mechanism.

    Args:
        name: MECHANISM, or MECHANISM-PARAMETERVALUE-…
        parameters: names of the parameters that the mechanism has.

    Raises:
        ValueError: if a part of the name contains no parameter, has no value, or repeats a
            parameter.
    """
    changed: dict[str, object] = {}
    for part in name.split(SEPARATOR)[1:]:
        matching = [parameter for parameter in parameters if part.startswith(parameter)]
        parameter = max(matching, key=len, default=None)
        if parameter is None:
            known = ", ".join(parameters) or "none"
            raise ValueError(
                f"{part} does not begin with a parameter of {base_of(name)}; it has {known}"
            )
        value = part.removeprefix(parameter)
        if not VALUE.fullmatch(value):
            raise ValueError(
                f"{part} has no value for {parameter}; write, for example, {parameter}0.5"
            )
        if parameter in changed:
            raise ValueError(f"the name contains {parameter} twice")
        changed[parameter] = yaml.safe_load(value)
    return changed
