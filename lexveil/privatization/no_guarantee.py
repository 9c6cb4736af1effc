"""No guarantee, no release: what to do where nothing is proven of what would run."""

from __future__ import annotations

from pathlib import Path

from lexveil.accounting.measurements import Measurement
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.formats.registry import as_source
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import Settings

STAMP = "no-guarantee"


def require_guarantee(settings: Settings, measurement: Measurement) -> None:
    """Refuse to release what nothing is proven of, unless that is asked for.

    Raises:
        RequestError: if so.
    """
    if settings.mode == "release" and measurement.refusals and not settings.without_guarantee:
        raise RequestError(
            f"nothing is released: no guarantee can be given, {'; '.join(measurement.refusals)}. Mend that; or say "
            "--without-guarantee (params.yaml: release.without_guarantee: true), which names the output so; or --mode "
            "experiment"
        )


def is_without_guarantee(settings: Settings, model: Model) -> bool:
    """Whether the output is to be named as one without a guarantee: it was asked for, and there is none."""
    if not settings.without_guarantee or settings.mode == "experiment":
        return False
    return settings.mode == "none" or bool(Engine(settings, model).measurement().refusals)


def stamped(target: Path) -> Path:
    """The name of an output without a guarantee: NAME.no-guarantee.EXT; as it is if it, or its folder, says so."""
    if STAMP in target.name or STAMP in target.parent.name:
        return target
    source = as_source(target)
    stem = source.stem if source else target.name
    return target.with_name(f"{stem}.{STAMP}{target.name[len(stem) :]}")
