"""Settings of detection: which detectors a run uses, and the action for each type of entity that
they find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.core.accounting.budgets import DEFAULT_FOUND, FOUND_ACTIONS, Action, Codes
from lexveil.core.detectors.lists import Phrases
from lexveil.core.detectors.presidio import Presidio
from lexveil.core.text.spans import Claim, Claims, Span, Spans, Words, claims_of

ANY = ""  # key of the pseudonyms for every type without a list of its own


@dataclass(frozen=True, slots=True, repr=False)
class Detection:
    """Settings of detection: the detectors of a run, and the action on the tokens of each entity
    type.

    Attributes:
        actions: name of the action by type; ``DEFAULT_FOUND`` applies to all other types.
        detector: detector besides the user's word lists and given spans; None if there is no such
            detector. It must find the same spans in the same texts in every process.
        protect: words and phrases that are always detected.
        allow: words and phrases that no detector may claim.
        has_spans: whether the user supplies spans with the texts.
        pseudonyms: by type, the public names from which pseudonyms are drawn; the names under
            ``ANY`` serve all other types.
    """

    actions: Mapping[str, str] = field(default_factory=dict)
    detector: Presidio | None = None
    protect: Phrases | None = None
    allow: Phrases | None = None
    has_spans: bool = False
    pseudonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise unless the lists, actions and pseudonyms agree, and the detector can run.

        Raises:
            RequestError: if an entry is on both lists, or a type has no names to draw pseudonyms
                from.
        """
        entries = [
            phrases.types.keys() for phrases in (self.protect, self.allow) if phrases is not None
        ]
        if len(entries) == 2 and not entries[0].isdisjoint(entries[1]):
            raise RequestError(
                "detection.protect and detection.allow have an entry in common; remove it from "
                "one of the lists"
            )
        for name, action in self.actions.items():
            if action == "pseudonym" and not self.names_for(name):
                raise RequestError(
                    f"detection.types: {name} needs a list of pseudonyms; give it by "
                    f"detection.pseudonyms or {option('pseudonyms')} FILE, one name per line "
                    f"below the heading [{name}]"
                )
        if self.detector is not None:
            self.detector.check()

    def without_lists(self) -> Detection | None:
        """Return the detection settings without the operator's lists; None if no detector
        remains.
        """
        if self.detector is None and not self.has_spans:
            return None
        return replace(self, protect=None, allow=None)

    def names_for(self, name: str) -> tuple[str, ...]:
        """Return the public names from which the pseudonyms for an entity type are drawn."""
        return self.pseudonyms.get(name) or self.pseudonyms.get(ANY, ())

    def codes(self, types: Sequence[str]) -> Codes:
        """Return (n_types,) the ``Action`` on detected tokens of each entity type. PERTURBED means
        that tokens of the type are treated like any other token.
        """
        return np.array(
            [FOUND_ACTIONS[self.actions.get(name, DEFAULT_FOUND)] for name in types], dtype=np.int8
        )

    @property
    def sources(self) -> list[str]:
        """Names of the detectors and other sources of spans, as privacy records show them."""
        sources = [] if self.detector is None else [self.detector.name]
        sources += [] if self.protect is None else ["a list of the operator"]
        return [*sources, *(["spans that came with the texts"] if self.has_spans else [])]

    def claim(self, texts: Sequence[str], given_spans: Sequence[tuple[int, Span]] = ()) -> Claim:
        """Return a function that computes which words of some texts the detectors claim as
        entities.

        Args:
            given_spans: spans that came with the texts, each with the number of its text.
        """

        def claim(words: Words) -> Claims:
            found = [] if self.detector is None else self.detector.find(texts)
            detected = ((text, span) for text, several in enumerate(found) for span in several)
            spans = Spans.of(
                chain(
                    detected, () if self.protect is None else self.protect.spans(words), given_spans
                )
            )
            allowed = None if self.allow is None else self.allow.covered(words)
            return claims_of(
                spans, words, self.codes(spans.types) != Action.PERTURBED.value, allowed
            )

        return claim
