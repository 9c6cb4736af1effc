"""What a request says of detectors, completed with params.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lexveil.accounting.budgets import DEFAULT_FOUND, FOUND_ACTIONS
from lexveil.accounting.record import DetectionRecord
from lexveil.artifacts.phrase_lists import load_phrases, load_pseudonyms
from lexveil.config import PolicyParams
from lexveil.detectors.detection import Detection
from lexveil.detectors.given import type_name
from lexveil.detectors.presidio import Presidio
from lexveil.errors import RequestError


class DetectionOptions(Protocol):
    """Of ``RewriteOptions``, what is about detectors."""

    @property
    def detector(self) -> str | None: ...  # noqa: D102
    @property
    def protect(self) -> str | None: ...  # noqa: D102
    @property
    def allow(self) -> str | None: ...  # noqa: D102
    @property
    def types(self) -> Mapping[str, str] | None: ...  # noqa: D102
    @property
    def pseudonyms(self) -> str | None: ...  # noqa: D102
    @property
    def spans_column(self) -> str | None: ...  # noqa: D102


def detection_of(options: DetectionOptions, policy: PolicyParams) -> Detection | None:
    """What is looked for; None if nothing is.

    Raises:
        RequestError: if a list cannot be read, a detector cannot begin, or a type has an action that there is not.
    """
    detector = options.detector or policy.detector
    protect = _file(options.protect, policy.protect, "--protect", "policy.protect")
    allow = _file(options.allow, policy.allow, "--allow", "policy.allow")
    pseudonyms = _file(options.pseudonyms, policy.pseudonyms, "--pseudonyms", "policy.pseudonyms")
    if detector in (None, "none") and protect is None and options.spans_column is None:
        asked = {"--allow": options.allow, "--type": options.types, "--pseudonyms": options.pseudonyms}
        for option, value in asked.items():
            if value:
                raise RequestError(f"{option}: nothing is looked for; add --detector, --protect or --spans")
        return None
    actions = dict(policy.types) | dict(_checked(options.types or {}))
    presidio = policy.presidio
    made = Detection(
        actions,
        None
        if detector != "presidio"
        else Presidio(
            presidio.language,
            tuple(presidio.entities),
            tuple(presidio.countries),
            presidio.threshold,
            presidio.spacy_model,
        ),
        None if protect is None else load_phrases(*protect),
        None if allow is None else load_phrases(*allow),
        options.spans_column is not None,
        load_pseudonyms(*(pseudonyms or (None, ""))) if "pseudonym" in actions.values() else {},
    )
    made.check()
    return made


def detection_record(detection: Detection) -> DetectionRecord:
    """What a record says of it: parameters, and nothing that was found."""
    return DetectionRecord.model_validate(
        {
            "sources": detection.sources,
            "types": dict(sorted(detection.actions.items())),
            "other_types": DEFAULT_FOUND,
        }
    )


def _file(given: str | None, default: str | None, option: str, key: str) -> tuple[Path, str] | None:
    """A file and what messages call it."""
    if given is not None:
        return Path(given), option
    return None if default is None else (Path(default), f"params.yaml: {key}")


def _checked(types: Mapping[str, str]) -> dict[str, str]:
    checked = {}
    for given, action in types.items():
        name = type_name(given)
        if name is None:
            raise RequestError("--type: a type is a name, such as PERSON in PERSON=placeholder")
        if action not in FOUND_ACTIONS:
            raise RequestError(f"--type {name}={action}: there is no such action; there are {', '.join(FOUND_ACTIONS)}")
        checked[name] = action
    return checked
