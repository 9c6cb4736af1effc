"""Any request of a caller is served or refused, and nothing else: parameters, arguments, and records that are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bad_inputs import lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_any_bytes import VALUES

from lexveil.accounting.budgets import DocumentBudget
from lexveil.api import inspect, privatize
from lexveil.artifacts.model import Model
from lexveil.config import load_params, parse_params
from lexveil.errors import LexveilError
from lexveil.inbox.archive import RECORD, read_record
from lexveil.ledger import anchor
from lexveil.ledger.verification import verify
from lexveil.lineage.release_lineage import read_record as lineage_record
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.release.preconditions import find_valid_audit
from lexveil.privatization.settings import settings_of
from lexveil.request import Request

EXAMPLES = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
RIGHT: dict[str, Any] = {"mechanism": "tem", "strategy": "S1", "epsilon": 10.0, "mode": "experiment"}
CHOICES: dict[str, list[Any]] = {
    "mechanism": [*MECHANISMS, "none", "nothing"],
    "strategy": ["S2", "S3", "S4", "none", "S9"],
    "epsilon": [None, 1e-9, 1e9, 0, -1.0, float("nan"), float("inf")],
    "document_budget": [None, 5.0, 1e-9, 1e12],
    "average_words": [20.0, "data", 0, "other"],
    "max_token_epsilon": [1.0, "none", -1.0, "other"],
    "mode": ["release", "other", None],
    "seed": [0, 2**62, -1, 2**70],
    **{name: [False, True] for name in ("without_guarantee", "keep_layout", "consistent")},
    **{name: ["paper", "perturb", "keep", "drop", "sample", "other"] for name in ("stopwords", "punctuation", "oov")},
}
HOW = st.lists(
    st.one_of(*(st.tuples(st.just(name), st.sampled_from(some) | VALUES) for name, some in CHOICES.items())), max_size=3
).map(lambda changes: RIGHT | dict(changes))
TEXTS = st.lists(st.text(max_size=24) | VALUES | st.binary(max_size=8), max_size=4)


def served(call: Callable[[], object]) -> bool:
    """Whether a request is served; one that is not is refused, and briefly."""
    try:
        call()
    except LexveilError as error:
        assert 0 < len(str(error)) < 4000 and "Traceback" not in str(error)
        return False
    return True


def changed(values: Any, data: st.DataObject) -> Any:
    """The same values of JSON, some of them others."""
    made = json.loads(json.dumps(values))
    for _ in range(data.draw(st.integers(0, 3))):
        part = made
        name = data.draw(st.sampled_from([*part, "unknown"]))
        while isinstance(part.get(name), dict) and part[name] and data.draw(st.integers(0, 3)):
            part = part[name]
            name = data.draw(st.sampled_from([*part, "unknown"]))
        part[name] = data.draw(VALUES)
    return made


@EXAMPLES
@given(st.data())
def test_any_parameters(built: Path, data: st.DataObject) -> None:
    served(lambda: parse_params(changed(load_params().model_dump(mode="json", by_alias=True), data)))


@EXAMPLES
@given(TEXTS | VALUES, st.none() | TEXTS, HOW)
def test_any_arguments(built: Path, values: Any, subjects: Any, how: dict[str, Any]) -> None:
    model = Model.load(built)
    served(lambda: json.dumps(privatize(values, subjects=subjects, project=model, workers=1, **how).record.to_dict()))
    Path("in.jsonl").write_bytes(lines({"text": "the market", "id": 1}))
    served(lambda: inspect("in.jsonl", subject_column="id", project=model, workers=1, **how))


@pytest.mark.parametrize("name", [RECORD, "out.record.json", "ledger.record.json", "tem-S1-10.json", "anchor"])
@EXAMPLES
@given(st.data())
def test_any_record(ready: Path, name: str, data: st.DataObject) -> None:
    """What is read of records, audits and anchors that lie beside outputs and ledgers."""
    model = Model.load(ready)
    record = {"mode": "release", "made_with": {}, "guarantee": {}, "publication": {"id_column": "id"}, "withdrawn": 0}
    engine: Any = SimpleNamespace(
        settings=settings_of(Request(**RIGHT | {"mode": "release"}), model.params),
        model=SimpleNamespace(params=model.params, project=SimpleNamespace(audits=ready / "read")),
        prepared=SimpleNamespace(parameters={}),
    )
    budget, reference = DocumentBudget(1.0, 1.0), model.reference("S1")
    readers: dict[str, tuple[dict[str, Any], Callable[[Path], object]]] = {
        RECORD: (record, lambda file: read_record(file.parent)),
        "out.record.json": (record, lineage_record),
        "ledger.record.json": (
            {"release": {"id": "a", "head": "0" * 64}}, lambda file: verify(Path(".lexveil/ledger"), [file])
        ),
        "tem-S1-10.json": (
            {"parameters": {}, "violation": False, "epsilon": 1.0, "mode": "release"},
            lambda file: find_valid_audit(engine, budget, reference, {}),
        ),
        "anchor": ({"entries": 3, "head": "0" * 64, "salt": "0" * 64}, anchor.read),
    }  # fmt: skip
    values, read = readers[name]
    (ready / "read").mkdir(exist_ok=True)
    broken = data.draw(st.none() | st.sampled_from([b"", b"[" * 100_000, b'{"a": ' * 100_000]) | st.binary(max_size=20))
    file = ready / "read" / name
    file.write_bytes(json.dumps(changed(values, data)).encode() if broken is None else broken)
    served(lambda: read(file))
