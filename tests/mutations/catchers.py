"""Detectors of planted faults: the audit, on its own toy project, and named tests, called
unchanged.
"""

import contextlib
import inspect
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lexveil.auditing.audit import AuditFinding, AuditRequest, AuditResult, audit
from lexveil.auditing.toy_project import make
from lexveil.base.errors import LexveilError
from lexveil.core.accounting.budgets import Policy
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.io.artifacts.project import Project
from lexveil.io.config import LOADER, parse_configuration, parse_params
from tests.mutations.planting import test_named

ROOT = Path(__file__).parents[2]
# Few samples, and so sure that a whole suite of audits hardly ever ends in a false alarm.
USUAL: dict[str, Any] = {"samples": 400, "workers": 1, "words": 20, "confidence": 1 - 1e-6}

# Kinds of faults that show there.
WRITTEN_TEXTS = "written texts"
RELEASES = (
    "context",
    "reuse",
    "entropy",
    "budgets",
    "shares",
    "unprotected",
    "charges",
    "statement",
)


def audited(
    mechanism: str,
    epsilon: float,
    strategy: str = "S1",
    own: Any = None,
    shares: Any = None,
    keys: int = 512,
    **how: Any,
) -> AuditResult:
    """Audit a mechanism with a toy project in the place of a user's; nothing has to be built.

    Args:
        keys: of batches, drawn in each process; fewer than in a user's audit, since only keys of
            few bits need many.
    """
    given = yaml.load((ROOT / "params.yaml").read_text(encoding="utf-8"), Loader=LOADER)
    for name, values in (own or {}).items():
        given["mechanisms"][name] |= values
    params = parse_params(given)
    policy = Policy.of(
        strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov
    )
    request = AuditRequest(mechanism=mechanism, epsilon=epsilon, strategy=strategy, **(USUAL | how))
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stderr(io.StringIO()),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("lexveil.auditing.keys.KEYS", keys)
        configuration = parse_configuration({"release": {"shares": shares or {}}})
        settings = Project(Path(), params, configuration, is_project=True)
        project = make(Path(folder), mechanism, strategy, policy, settings, epsilon)
        with contextlib.redirect_stdout(io.StringIO()):
            return audit(request, project=project.model)


def complaints(**how: Any) -> list[str]:
    """Return the violations that an audit finds, or the reason why the product itself refuses."""
    try:
        return why(audited(**how))
    except LexveilError as error:
        return [f"refused by the product itself: {error}"]


def caught_by_audit(kind: str, **how: Any) -> bool:
    """Whether there are complaints; the audit ends at the first finding.

    Args:
        kind: of the fault: what shows in releases alone, or in written texts alone, is looked for
            there first, since all else would be done in vain.
    """

    class EnoughError(Exception):
        pass

    def ending(make: Callable[..., AuditFinding]) -> Callable[..., AuditFinding]:
        def made(*what: Any) -> AuditFinding:
            finding = make(*what)
            if finding.violation:
                raise EnoughError
            return finding

        return made

    left_out = dict.fromkeys(RELEASES, "audit_written_texts") | {WRITTEN_TEXTS: "audit_releases"}
    for first in (True, False) if kind in left_out else (False,):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("of", "fact"):
                patch.setattr(AuditFinding, name, ending(getattr(AuditFinding, name)))
            if first:
                patch.setattr("lexveil.auditing.audit.SHAPES", ())
                patch.setattr(f"lexveil.auditing.audit.{left_out[kind]}", lambda *_: [])
            try:
                if complaints(**how):
                    return True
            except EnoughError:
                return True
    return False


def why(result: AuditResult) -> list[str]:
    """Return the violations in the result of an audit."""
    return [
        f"{finding.place}: {finding.method}: {finding.detail}"
        for finding in result.audits
        if finding.violation
    ]


def fails(named: str, values: dict[str, Any], fixture: Callable[[str], Any]) -> bool:
    """Return whether a test fails that is called with ``values`` and the other fixtures that it
    asks for."""
    test = test_named(named)
    inner = getattr(test, "hypothesis", None)
    values = dict(values)
    if values.pop("excluded", False):
        values["mechanism"] = Vickrey([[0.0], [1.0], [3.0]], exclude_input=True)
    wanted = [] if inner else inspect.signature(test).parameters
    values |= {name: fixture(name) for name in wanted if name not in values}
    try:
        test(**values)
    except (Exception, pytest.fail.Exception):
        return True
    return False
