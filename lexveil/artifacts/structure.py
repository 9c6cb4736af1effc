"""Read what stage measure_structure measured."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.guarantee import StructureFigures
from lexveil.accounting.results import Result
from lexveil.accounting.structure import StructureChange
from lexveil.errors import MissingArtifact


class MeasuredStructure(Result):
    """What one replaced word changes in public texts of one segmentation."""

    segmentation: str
    source: str
    """The texts."""
    texts: int
    replacements: int
    policies: dict[str, dict[str, str]]
    """The policy of each strategy, as params.yaml had it."""
    strategies: dict[str, StructureChange]
    """Under that policy."""
    any_policy: dict[str, StructureChange]
    """Bounds from above for every policy: classes of tokens in place of their fates."""

    def change(self, strategy: str, policy: Policy) -> tuple[StructureChange, str]:
        """What holds for a strategy under a policy, and of what texts."""
        named = {"stopwords": policy.stopwords, "punctuation": policy.punctuation, "oov": policy.oov}
        if self.policies[strategy] == named:
            return self.strategies[strategy], self.source
        return self.any_policy[strategy], f"{self.source}; at most, as for every policy"

    def figures(self, strategy: str, policy: Policy) -> StructureFigures:
        """What a guarantee states of it."""
        change, source = self.change(strategy, policy)
        return StructureFigures(
            source=source,
            texts=self.texts,
            replacements=self.replacements,
            number_changed=change.number.share,
            pattern_changed=change.pattern.share,
            structure_changed=change.structure.share,
        )


def load_structure(strategy: str, project: Path = Path()) -> MeasuredStructure | None:
    """The measurement of a strategy's segmentation; None where no run has made it, or it had no text to measure.

    Raises:
        MissingArtifact: if the file is not what the stage writes.
    """
    segmentation = SEGMENTATION_OF[strategy]
    file = project / paths.structure(segmentation)
    if not file.is_file():
        return None
    content = file.read_bytes()
    if content.strip() == b"null":
        return None
    try:
        return MeasuredStructure.model_validate_json(content)
    except ValidationError:
        raise MissingArtifact(
            f"{file} is not of this version; make it again: dvc repro measure_structure@{segmentation}"
        ) from None
