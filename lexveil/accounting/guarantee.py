"""What a record states of an output: the proven bound and its conditions, or why there is none.

Nobody but ``lexveil.accounting.measurements`` makes one: it follows from the measurement that ran.
"""

from __future__ import annotations

from lexveil.accounting.results import Result


class StructureFigures(Result):
    """How often one replaced word changes the structure of a text, measured on public texts."""

    source: str
    """The texts."""
    texts: int
    replacements: int
    number_changed: float
    """The number of tokens: a share of the replacements."""
    pattern_changed: float
    """The number of tokens, or the fate of one of them."""
    structure_changed: float
    """Any of number, fates, epsilon and kept words: between such texts nothing is claimed."""


class Guarantee(Result):
    """What may be claimed of one output."""

    formula: str
    """The proven bound, or `none`."""
    statement: str
    """The same in words."""
    because: list[str]
    """Conditions of the bound, or why there is none."""
    not_covered: str | None = None
    """Between which texts nothing is claimed."""
    structure: StructureFigures | None = None
    """How often that is so; null where it was not measured."""
    in_release: Guarantee | None = None
    """What a release with the same settings would state; only of experiments."""

    @property
    def holds(self) -> bool:
        """Whether anything is claimed."""
        return self.formula != NONE


NONE = "none"
