"""Nothing that depends on a text outlives its request: the process keeps no such value, and
therefore shows none in its timing.
"""

import functools
import hashlib
import sys
from enum import Enum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lexveil
from lexveil.core.accounting.budgets import Policy
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.terms import Terms
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.artifacts.model import Model
from tests.privatization.sentence_banks import build_bank

PLAIN = (str, bytes, int, float, complex, bool, type(None), Path, Enum)


def parts(value):
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from ((f"[{number}]", item) for number, item in enumerate(items))
    elif type(value).__module__.startswith("lexveil"):  # libraries have caches of their own
        yield from ((f".{name}", item) for name, item in getattr(value, "__dict__", {}).items())
        slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
        yield from (
            (f".{name}", getattr(value, name)) for name in sorted(slots) if hasattr(value, name)
        )


def kept(root):
    """Return a digest of each value that can be reached from an object or from the library's
    modules, by the place of the value.
    """
    values = {}
    seen = {}

    stack = [("", root)]
    for name, module in sorted(sys.modules.items()):
        if name.startswith("lexveil"):
            stack += [
                (f"{name}:{key}", value)
                for key, value in vars(module).items()
                if not key.startswith("__")
            ]
    while stack:
        where, value = stack.pop()
        if isinstance(value, PLAIN):
            values[where] = repr(value)
        elif isinstance(value, functools._lru_cache_wrapper):
            values[where] = str(value.cache_info().currsize)
        elif id(value) in seen:
            continue
        elif isinstance(value, np.ndarray) and value.dtype != object:
            values[where] = hashlib.sha256(np.ascontiguousarray(value)).hexdigest()
        elif isinstance(value, pa.Array | pa.ChunkedArray):
            values[where] = str((len(value), value.nbytes))
        else:
            seen[id(value)] = value
            values[f"{where}()"] = type(value).__name__
            stack += [(where + step, part) for step, part in parts(value)]
    return values


# By lists of near words, which are made at this epsilon; by searches; by lists of words.
SETTINGS = [
    {"mechanism": "tem_context", "strategy": "S1", "epsilon": 20.0},
    {"mechanism": "tem", "strategy": "S3", "epsilon": 40.0, "oov": "sample"},
    {"mechanism": "diffractor_tem", "strategy": "S2", "epsilon": 3.0},
    {"mechanism": "vickrey", "strategy": "S4", "epsilon": 10.0, "consistent": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["mechanism"])
def test_the_process_keeps_nothing_of_a_request(settings, outside):
    nothing_is_kept(settings, "toy")


@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_the_process_keeps_nothing_of_sentences(unit, outside, tmp_path):
    bank = str(build_bank(tmp_path))
    settings = {"mechanism": "tem", "strategy": "S5", "epsilon": 5.0, "bank": bank, "unit": unit}
    nothing_is_kept(settings, "en+sentiment=3")


def nothing_is_kept(settings, model):
    rewriter = TextRewriter(Terms(model=model, fixed=settings), WarmModel.find(model))
    rewriter.warm_up()

    def ask(text, subject):
        rewriter.privatize([text], [subject], {}, None, None)
        rewriter.inspect([text], {})

    ask("The fire burned.", "ann")  # all is loaded, and nothing follows from which texts come next
    ask("A first text of somebody.", "ann")
    before = kept(rewriter)
    for number in range(3):
        ask(
            f"Police said New York was zanzibarsecret{number} there, and services too; the "
            "end of government!",
            "ben",
        )
    after = kept(rewriter)
    assert after == before
    assert not [where for where, value in after.items() if "zanzibarsecret" in where + value]


def test_a_record_names_the_files_that_were_loaded(outside, monkeypatch):
    """The record does not name files that replaced the loaded ones since."""
    model = WarmModel.find("toy")
    of = ("tem_context", "S1", Policy("keep", "keep", "sample"))
    loaded = model.mechanism(*of).hashes()
    monkeypatch.setattr("lexveil.io.artifacts.mechanisms.sha256", lambda _: "of another file")
    assert loaded and model.mechanism(*of).hashes() == loaded


def test_a_model_shared_by_several_clients_keeps_nothing_of_their_texts(listed):
    model = Model.load(listed)
    how = {
        "mechanism": "tem",
        "strategy": "S1",
        "epsilon": 40.0,
        "seed": 1,
        "project": model,
    }
    lexveil.privatize(["The fire burned."], **how)
    before = kept(model)
    lexveil.privatize(["Police said zanzibarsecret was there."], **how)
    assert kept(model) == before
