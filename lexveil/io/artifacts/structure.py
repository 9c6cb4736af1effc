"""Sensitivity of the disclosed structure, such as the number of tokens, to one replaced word. It is
measured in public texts for the strategies of a segmentation.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
from pydantic import ValidationError

from lexveil.base import paths
from lexveil.base.errors import MissingArtifactError
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.results import Result
from lexveil.core.accounting.structure import (
    Replacements,
    StructureChange,
    StructureFigures,
    measure,
)
from lexveil.core.text.encode import Lexicon
from lexveil.io.config import Params


class MeasuredStructure(Result):
    """Measured sensitivity of the disclosed structure (such as the number of tokens): the effect of
    one replaced word in public texts of one segmentation.

    Attributes:
        source: Description of the texts.
        policies: Policy of each strategy in params.yaml.
        strategies: Measured changes of each strategy under its policy.
        any_policy: Upper bounds of the changes that hold for every policy, computed from classes of
            tokens, without regard to whether the policy perturbs, keeps or drops them.
    """

    segmentation: str
    source: str
    texts: int
    replacements: int
    policies: dict[str, dict[str, str]]
    strategies: dict[str, StructureChange]
    any_policy: dict[str, StructureChange]

    def change(self, strategy: str, policy: Policy) -> tuple[StructureChange, str]:
        """Return the measured effect of one replaced word on the disclosed structure, for a
        strategy under a policy, and a description of the measured texts.
        """
        named = {
            "stopwords": policy.stopwords,
            "punctuation": policy.punctuation,
            "oov": policy.oov,
        }
        if self.policies[strategy] == named:
            return self.strategies[strategy], self.source
        return self.any_policy[strategy], f"{self.source}; an upper bound for every policy"

    def figures(self, strategy: str, policy: Policy) -> StructureFigures:
        """Return the figures about the disclosed structure that a guarantee states for a strategy
        under a policy.
        """
        change, source = self.change(strategy, policy)
        return StructureFigures(
            source=source,
            texts=self.texts,
            replacements=self.replacements,
            number_changed=change.number.share,
            pattern_changed=change.pattern.share,
            structure_changed=change.structure.share,
        )


def first_texts(sample: Path, n: int) -> list[str]:
    """Return the first n texts of a sample file, or all texts if the sample has fewer."""
    batches = pq.ParquetFile(sample).iter_batches(n, columns=["text"])
    texts = (text for batch in batches for text in batch.column("text").to_pylist())
    return list(islice(texts, n))


def measured(
    lexicon: Lexicon, replacements: Replacements, params: Params, source: str
) -> MeasuredStructure:
    """Measure the sensitivity of the disclosed structure for all strategies of the lexicon's
    segmentation.

    Args:
        source: description of the texts.
    """
    strategies = [
        strategy for strategy, of in SEGMENTATION_OF.items() if of == lexicon.segmentation
    ]
    given = params.policy
    policies = {
        name: Policy.of(name, given.stopwords, given.punctuation, given.oov) for name in strategies
    }
    return MeasuredStructure(
        segmentation=lexicon.segmentation,
        source=source,
        texts=len(replacements.texts),
        replacements=len(replacements.copies),
        policies={name: asdict(policy) for name, policy in policies.items()},
        strategies={
            name: measure(replacements, lexicon, policy, name) for name, policy in policies.items()
        },
        any_policy={name: measure(replacements, lexicon, None, name) for name in strategies},
    )


def load_structure(segmentation: str, project: Path = Path()) -> MeasuredStructure | None:
    """Load the measured structure sensitivity of a segmentation. The result is None if no run has
    made the measurement, or if there was no text to measure.

    Raises:
        MissingArtifactError: if the file does not have the form that the stage writes.
    """
    file = project / paths.structure(segmentation)
    if not file.is_file():
        return None
    content = file.read_bytes()
    if content.strip() == b"null":
        return None
    try:
        return MeasuredStructure.model_validate_json(content)
    except ValidationError:
        raise MissingArtifactError(
            f"{file}: another version wrote the file; make it again: dvc repro measure_structure"
        ) from None
