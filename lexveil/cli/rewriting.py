"""The options of `lexveil privatize` and `lexveil inspect` that say how texts are rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from lexveil.cli.options import Positive, Seed, Strategy, exclusive, reads, whole

BUDGET = exclusive("budget")

Mechanism = Annotated[
    str,
    Parameter(
        metavar="M",
        help="none, madlib, mahalanobis, vickrey, tem, truncated_gumbel, diffractor_geometric, diffractor_tem",
    ),
]
StrategyOption = Annotated[
    Strategy,
    Parameter(
        help="none; S1 (word): words; S2 (gst-word-budget): collocations on the budget of words; "
        "S3 (gst): collocations, greedy; S4 (mst): collocations by score"
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Rewriting:
    """How texts are rewritten, but for the mechanism and the strategy."""

    epsilon: Annotated[
        Positive | None,
        Parameter(
            metavar="E",
            group=BUDGET,
            help="base epsilon per word; a row's budget is E times the mean number of words",
        ),
    ] = None
    document_budget: Annotated[
        Positive | None, Parameter(metavar="B", group=BUDGET, help="the budget of each row, directly")
    ] = None
    text_column: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME",
            help="a column to rewrite (default: text); can be given several times: the texts of a row share its budget",
        ),
    ] = ()
    subject_column: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help="the column that says whom a row is about: whose budget the ledger keeps over all releases, up to "
            "release.cap of params.yaml (default: each text is a subject of its own, known again by its content)",
        ),
    ] = None
    mode: Annotated[
        Literal["release", "experiment"] | None,
        Parameter(
            help="release (the default): noise from the operating system; experiment: seeded, repeatable, not private"
        ),
    ] = None
    seed: Annotated[
        Seed | None,
        Parameter(help="the seed of an experiment (default: params.yaml); implies --mode experiment"),
    ] = None
    consistent: Annotated[
        Literal["document"] | None,
        Parameter(
            help="replace equal words of a row alike, paying once; shows which are equal, and the guarantee says so"
        ),
    ] = None
    keep_layout: Annotated[bool, Parameter(help="copy the writer's spacing and capitals; recorded as unprotected")] = (
        False
    )
    stopwords: Annotated[
        Literal["paper", "perturb", "keep", "drop", "sample"] | None,
        Parameter(help="what happens to stop words (default: params.yaml)"),
    ] = None
    punctuation: Annotated[
        Literal["perturb", "keep", "drop", "sample"] | None,
        Parameter(help="what happens to punctuation (default: params.yaml)"),
    ] = None
    oov: Annotated[
        Literal["keep", "drop", "sample"] | None,
        Parameter(help="what happens to unknown words (default: params.yaml)"),
    ] = None
    format: Annotated[
        str | None,
        Parameter(metavar="F", help="how standard input is written: jsonl (the default), csv, tsv, txt, csv.gz, …"),
    ] = None
    workers: Annotated[
        int | None,
        Parameter(
            metavar="N",
            converter=reads(whole(1, 1024, "a number of processes (1 to 1024)")),
            help="processes that rewrite, one core each; changes no result (default: 1 if there is little to do, else "
            "params.yaml: machine.workers)",
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """The same as keyword arguments of ``privatize_file`` and ``inspect``."""
        return {
            "epsilon": self.epsilon,
            "document_budget": self.document_budget,
            "text_column": tuple(dict.fromkeys(self.text_column or ("text",))),
            "subject_column": self.subject_column,
            "form": self.format,
            "consistent": self.consistent == "document",
            "mode": self.mode or ("release" if self.seed is None else "experiment"),
            "seed": self.seed,
            "keep_layout": self.keep_layout,
            "stopwords": self.stopwords,
            "punctuation": self.punctuation,
            "oov": self.oov,
            "workers": self.workers,
        }
