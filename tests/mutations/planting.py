"""Plant a fault: a function of the product with a piece of its source replaced, in this process,
until undone."""

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import pytest
import yaml

from lexveil.core.accounting.budgets import Policy

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and who must catch it.

    Attributes:
        audit: what to audit, and how, where the audit catches it: mechanism, epsilon, strategy,
            samples, workers, own (parameters of mechanisms), policy. None where no audit can see
            it.
        tests: named tests that catch it: file::function, and the values of its parameters.
        nightly: whether it takes so many samples, or processes, that it is tried by night; others
            of its kind are tried by day.
    """

    name: str
    kind: str
    plant: Plant
    audit: dict[str, Any] | None = None
    tests: tuple[tuple[str, dict[str, Any]], ...] = ()
    nightly: bool = False

    def fixtures(self) -> set[str]:
        """The fixtures that its named tests ask for."""
        wanted: set[str] = set()
        for named, values in self.tests:
            test = test_named(named)
            if not hasattr(test, "hypothesis"):
                wanted |= {
                    name for name in inspect.signature(test).parameters if name not in values
                }
        return wanted - {"mechanism"}


def test_named(named: str) -> Any:
    """The function of a test, ``tests/…/file.py::function``; modules beside its file are found by
    their names."""
    file, _, function = named.partition("::")
    folder = str(Path(__file__).parents[2] / Path(file).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), function)


test_named.__test__ = False


def found(path: str) -> tuple[Any, str]:
    """The object that holds what ``module:Class.name`` names, and the name in it."""
    module, _, qualified = path.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = qualified.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def swap(path: str, old: str, new: str) -> Plant:
    """Replace a piece of the source of a function; it must be there, so that a fault never goes
    stale unseen."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        owner, name = found(path)
        raw = inspect.getattr_static(owner, name)
        function = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
        function = getattr(raw, "py_func", function)  # of a kernel, which is compiled anew
        source = textwrap.dedent(inspect.getsource(function))
        assert old in source, f"{path} does not hold {old!r} any more: plant the fault anew"
        source = re.sub(r"^(@\w+.*\n)+", "", source)
        space = function.__globals__
        if inspect.isclass(owner):
            source = source.replace("super()", f"super({owner.__name__}, self)")
        before = space.get(name)
        made: dict[str, Any] = {}
        exec(
            compile(
                source.replace(old, new), f"<fault in {path}>", "exec", flags=0, dont_inherit=False
            ),
            space,
            made,
        )
        assert space.get(name) is before
        changed = (
            made[name]
            if function is not getattr(raw, "py_func", None)
            else numba.njit(error_model="numpy")(made[name])
        )
        if isinstance(raw, property):
            changed = property(changed)
        elif isinstance(raw, classmethod | staticmethod):
            changed = type(raw)(changed)
        _replace(patch, owner, name, changed)

    return plant


def _replace(patch: pytest.MonkeyPatch, owner: Any, name: str, changed: Any) -> None:
    """Put ``changed`` in the place of what is there, also where a module imported it by its
    name."""
    original = getattr(owner, name)
    patch.setattr(owner, name, changed)
    if not inspect.isclass(owner):
        for module in [*sys.modules.values()]:
            if getattr(module, "__dict__", {}).get(name) is original:
                patch.setattr(module, name, changed)


def wrap(path: str, around: Callable[..., Any]) -> Plant:
    """Replace a function by ``around(original, *arguments)``."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        owner, name = found(path)
        original = getattr(owner, name)

        def changed(*arguments: Any, **named: Any) -> Any:
            return around(original, *arguments, **named)

        _replace(patch, owner, name, changed)

    return plant


def both(*plants: Plant) -> Plant:
    """Plant several."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


class FaultLoader(yaml.SafeLoader):
    """YAML with policies: ``!policy [keep, keep, sample]``."""


FaultLoader.add_constructor(
    "!policy", lambda loader, node: Policy(*loader.construct_sequence(node))
)


def read_faults(path: Path) -> list[Fault]:
    """The faults of a file that are other wording of one function."""
    return [
        Fault(
            name=entry["name"],
            kind=entry["kind"],
            plant=swap(entry["in"], entry["old"], entry["new"]),
            audit=entry.get("audit"),
            tests=tuple((test["test"], test["values"]) for test in entry.get("tests", ())),
            nightly=entry.get("nightly", False),
        )
        for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=FaultLoader)
    ]
