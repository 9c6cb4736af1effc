"""A record names the audit it relies on, and an audit that failed stops releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lexveil import paths
from lexveil.accounting.record import AuditReference
from lexveil.config import load_params
from lexveil.errors import RequestError
from lexveil.privatization.audit_lookup import audit_relied_on
from lexveil.privatization.settings import RewriteOptions, make_settings
from lexveil.runtime.hashes import sha256


def write(name: str, **changed: Any) -> Path:
    paths.AUDITS.mkdir(parents=True, exist_ok=True)
    file = paths.AUDITS / f"{name}.json"
    result = {"epsilon": 10.0, "mode": "release", "violation": False, "parameters": {"t": 0.75}} | changed
    file.write_text(json.dumps(result))
    return file


def relied_on(epsilon: float = 10.0, mode: str = "release") -> AuditReference | None:
    options = RewriteOptions(mechanism="vickrey", strategy="S3", epsilon=epsilon, mode=mode)
    return audit_relied_on(make_settings(options, load_params()), {"t": 0.75}, paths.AUDITS)


def test_the_nearest_epsilon_counts(project: Path) -> None:
    assert relied_on() is None
    write("vickrey-S3-1.0", epsilon=1.0)
    file = write("vickrey-S3-10.0")
    write("vickrey-S1-10.0", epsilon=9.0)
    found = relied_on(9.0)
    assert found is not None
    reference = {"epsilon": 10.0, "mode": "release", "result": "no violation found", "sha256": sha256(file)}
    assert found.to_dict() == reference


def test_an_audit_of_other_parameters_or_half_a_file_is_none(project: Path) -> None:
    write("vickrey-S3-10.0", parameters={"t": 0.5})
    (paths.AUDITS / "vickrey-S3-20.0.json").write_text('{"epsilon": 20.0, "vio')
    (paths.AUDITS / "vickrey-S3-30.0.json").write_text("[]")
    assert relied_on() is None


def test_nothing_is_released_on_a_violation(project: Path) -> None:
    write("vickrey-S3-10.0", violation=True)
    with pytest.raises(RequestError, match=r"vickrey-S3-10\.0\.json: the last audit .* found a violation"):
        relied_on()
    found = relied_on(mode="experiment")
    assert found is not None and found.result == "violation found"
