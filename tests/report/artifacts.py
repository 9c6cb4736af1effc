"""A small set of all artifacts whose numbers are chosen here and in artifacts.yaml, and the page
made of it."""

import json
import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from lexveil.base.levels import BaseEpsilon, GridRun, RecoveryTarget
from lexveil.core.accounting.measurements import FORMULA
from lexveil.core.mechanisms.registry import MECHANISMS
from tasks import report
from tests.report.records import BACK_ENDS, dataset, named, recovered
from tests.tasks.changing import change_params

ROOT = Path(__file__).parents[2]
STATIC = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
SECRET = "zyxomatic"  # stands in every document, and may stand nowhere else
STRATEGIES = {"S1": "word", "S2": "gst"}
EPSILONS = (1.0, 10.0)
WORDS = {  # by falling frequency: what the sample of tokens is chosen from
    "word": ["the", "york", "new", "42", "city", "rain"],
    "gst": ["the", "new_york", "rain", "city", "the_rain", "new_york_city", "sun"],
    "mst": ["the", "new_york", "rain", "city", "sun"],
}
RIGHT = {"all": 7, "function": 4, "frequent": 2, "middle": 1, "rare": 0}  # words recovered, by band
Key = GridRun
LINKAGE = {"structure": 1.0, "naive": 0.25, "likelihood": 0.5}  # shares of sources found


def put(path: str, value: object) -> None:
    """Write JSON, or a table of columns, below artifacts/."""
    file = Path("artifacts") / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.table(value), file)
    else:
        file.write_text(json.dumps(value), encoding="utf-8")


def change(path: str, **changed: object) -> None:
    """Change entries of a JSON file below artifacts/."""
    put(path, json.loads((Path("artifacts") / path).read_text(encoding="utf-8")) | changed)


def counts(**known: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Tokens by class and action."""
    none = dict.fromkeys(("perturbed", "kept", "dropped", "sampled"), 0)
    return {kind: none | known.get(kind, {}) for kind in ("word", "stopword", "punctuation", "oov")}


def put_run(key: Key, unchanged: float | None, cosine: float | None) -> None:
    """One run of 3 texts: 20 tokens, of which the policy keeps 2 marks of punctuation (and 5 stop
    words in S1)."""
    mechanism, strategy, noise = key
    stop_words = 5 * (strategy == "S1")
    by_class = counts(
        word={"perturbed": 15 - stop_words},
        stopword={"kept": stop_words},
        punctuation={"kept": 2},
        oov={"sampled": 3},
    )
    statement = (
        "The text is unchanged." if mechanism == "none" else "Not private: somebody has the seed."
    )
    guarantee: dict[str, object] = {"formula": "none", "statement": statement, "because": [""]}
    if mechanism == "none":
        by_class = counts(word={"kept": 12}, stopword={"kept": 6}, punctuation={"kept": 2})
    else:
        put_recovery(key)
        guarantee["in_release"] = {
            "formula": FORMULA,
            "statement": f"As far as said, d the {MECHANISMS[mechanism].metric}",
            "because": [
                "kept tokens are the same",
                *([f"as {mechanism} draws"] if mechanism != "madlib" else []),
            ],
            "not_covered": "Not covered: other cuts." if strategy == "S2" else None,
        }
    total = {action: sum(one[action] for one in by_class.values()) for action in by_class["word"]}
    folder = "/".join(map(str, ("private", *key)))
    put(f"{folder}/record.json", {"lexveil": "9.8.7", "guarantee": guarantee})
    put(
        f"{folder}/documents.parquet",
        {"dataset": ["a"], "doc_id": ["a"], "text": [SECRET], "text_b": [SECRET]},
    )
    put(
        f"{folder}/metrics.json",
        {f"n_{action}": n for action, n in total.items()}
        | {
            "n_documents": 3,
            "n_texts": 3,
            "n_tokens_in": 20,
            "n_tokens_out": 20,
            "n_words_in": 1234,
            "n_words_out": 5678,
            "by_class": by_class,
            "share_unchanged": unchanged,
            "mean_cosine": cosine,
            "unprotected_share": total["kept"] / 20,
            "epsilon_spent_mean": 3.25 * noise.number,
        },
    )


def put_recovery(key: Key, *, with_model: bool = True, **listed: int) -> None:
    """16 words a band in alpha, of which ``RIGHT`` are recovered, at ε = 10 twice as many; S1 keeps
    stop words."""

    def entry(band: str, right: int) -> dict[str, Any]:
        n = 0 if (key[1], band) == ("S1", "function") else 64 if band == "all" else 16
        by_context = recovered(right * (2 if key[2].number == 10 else 1) * (n > 0), n)
        known = {"by_context": by_context, "without_output": recovered(0, n)} if with_model else {}
        return {
            "n": n,
            "unchanged": recovered(0, n),
            "by_word": recovered(right * (n > 0), n),
            **known,
        }

    alpha = {band: entry(band, right) for band, right in (RIGHT | listed).items()}
    datasets = {"alpha": alpha, "beta": {band: {"n": 0} for band in alpha}}
    model = "kneser_ney" if with_model else None
    put(
        "/".join(map(str, ("recovery", *key))) + ".json",
        named(*key)
        | {"language_model": model, "left_out": None, "all": alpha, "datasets": datasets}
        | {"linkage": {name: {"100": LINKAGE} for name in datasets}},
    )


def put_scores(
    key: Key, utility: float, adaptive: float, on_clean: float = 0.4375, sd: float | None = 0.0625
) -> None:
    """Everything is measured of data set alpha; beta has neither label nor attribute, and only that
    is said of it."""
    scores = {"utility": utility, "adaptive": adaptive, "on_clean": on_clean}
    alpha = dataset(**scores, cosine=utility / 2, perplexity=1000 * utility, auc=0.625, sd=sd)
    beta = {part: entry for part, entry in dataset().items() if part in ("utility", "attack")}
    datasets = {"alpha": alpha, "beta": beta}
    put(
        "/".join(map(str, ("evaluation", *key))) + ".json",
        named(*key) | BACK_ENDS | {"datasets": datasets},
    )


def put_grid_scores(mechanism: str = "madlib") -> None:
    """Utility 0.5 and 0.75 at the two epsilons, the attack 0.25 and 0.5; 0.125 less utility in
    S2."""
    for strategy, less in (("S1", 0.0), ("S2", 0.125)):
        for epsilon, utility, adaptive in ((1.0, 0.5, 0.25), (10.0, 0.75, 0.5)):
            put_scores((mechanism, strategy, BaseEpsilon(epsilon)), utility - less, adaptive)


def statistic(epsilon: float, n_w: float, s_w: float, exact: bool = False) -> dict[str, Any]:
    """A row whose quartiles are 0.5 around the means, and whose expectations are 0.25 above
    them."""
    parts = {"mean": 0.0, "q25": -0.5, "median": 0.0, "q75": 0.5}
    means = {"n_w": n_w, "s_w": s_w, "n_w_exact": n_w + 0.25, "s_w_expected": s_w + 0.25}
    rows = {
        name: {part: mean + shift for part, shift in parts.items()} for name, mean in means.items()
    }
    unknown = {} if exact else dict.fromkeys(list(means)[2:])
    of = {"epsilon": epsilon, "n_words": 2, "n_draws": 100, "refused": None}
    return of | rows | unknown


def put_deniability(
    mechanism: str, segmentation: str, *rows: Mapping[str, Any], words: Sequence[int] = (1, 3)
) -> None:
    of = {"mechanism": mechanism, "segmentation": segmentation}
    put(
        f"deniability/{mechanism}/{segmentation}.json",
        of | {"n_shared": 5, "word_rows": words, "statistics": rows},
    )


def put_others(refused: str | None = None) -> None:
    """Add tem and diffractor_geometric to the grid, of S1 alone."""
    change_params(
        grid={"mechanisms": ["madlib", "tem", "diffractor_geometric"], "strategies": ["S1"]}
    )
    first = statistic(1.0, 20.0, 90.0, exact=True)
    if refused is not None:
        first |= dict.fromkeys(("n_w", "s_w", "n_w_exact", "s_w_expected")) | {"refused": refused}
    for mechanism in ("tem", "diffractor_geometric"):
        put_grid_scores(mechanism)
        put_deniability(mechanism, "word", first, statistic(10.0, 99.0, 1.5, exact=True))
        for epsilon in EPSILONS:
            put_run((mechanism, "S1", BaseEpsilon(epsilon)), 0.5, 0.5)


def put_levels(epsilons: Sequence[float]) -> None:
    """Runs of S1 at two levels, and at base epsilons."""
    change_params(grid={"strategies": ["S1"], "epsilons": [*epsilons, "r0.2", "r0.05"]})
    for level, utility in ((RecoveryTarget(0.05, 2.5), 0.5), (RecoveryTarget(0.2, 7.75), 0.625)):
        put_run(("madlib", "S1", level), 0.25, 0.5)
        put_scores(("madlib", "S1", level), utility, 0.25)


def put_skipped(epsilons: Sequence[float | str]) -> None:
    """Runs of S1, of which that at 5 % of recovery was skipped; it has no texts and no figures."""
    change_params(grid={"strategies": ["S1"], "epsilons": [*epsilons, "r0.05"]})
    skipped = {"mechanism": "madlib", "strategy": "S1", "recovery": 0.05, "band": "content"}
    skipped |= {"nearest": 0.0625, "skipped": "out of reach: as was found; ask for more"}
    for file in ("plans/madlib/S1/r0.05/planned", "private/madlib/S1/r0.05/skipped"):
        put(f"{file}.json", skipped)
    for file in ("evaluation", "recovery", "checks/plans"):
        put(f"{file}/madlib/S1/r0.05.json", skipped)


def make_artifacts() -> None:
    """All artifacts of two strategies at two epsilons, in the current folder."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    Path("params.yaml").write_text(yaml.safe_dump(params | {"seed": 77}), encoding="utf-8")
    change_params(
        grid={
            "mechanisms": ["madlib"],
            "strategies": list(STRATEGIES),
            "segmentations": ["word", "gst", "mst"],
            "epsilons": list(EPSILONS),
        }
    )
    for path, value in STATIC.items():
        put(path, value)
    put_run(("none", "none", BaseEpsilon(0.0)), None, None)
    put_scores(("none", "none", BaseEpsilon(0.0)), 0.875, 0.625, on_clean=0.875)
    put_grid_scores()
    for segmentation in STRATEGIES.values():
        put_deniability(
            "madlib", segmentation, statistic(1.0, 2.5, 80.0), statistic(10.0, 60.5, 30.0)
        )
    for strategy, epsilon, unchanged, cosine in (
        ("S1", 1.0, 0.0625, 0.25),
        ("S1", 10.0, 0.5, 0.75),
        ("S2", 1.0, 0.125, 0.375),
        ("S2", 10.0, 0.625, -0.125),
    ):
        put_run(("madlib", strategy, BaseEpsilon(epsilon)), unchanged, cosine)
    for name, tokens in WORDS.items():
        put_arrays(
            Path("artifacts/embeddings", name), Path("artifacts/neighborhoods", name), tokens
        )


def put_arrays(embedding: Path, neighborhood: Path, tokens: Sequence[str]) -> None:
    """The neighbours of row i are the rows after it, the j-th at distance i + j / 8."""
    rows = np.arange(len(tokens))
    nearest = np.arange(1, len(tokens))
    neighborhood.mkdir(parents=True)
    (embedding / "words.txt").write_text(
        "".join(f"{token}\n" for token in tokens), encoding="utf-8"
    )
    np.save(embedding / "counts.npy", 100 - 10 * rows)
    np.save(
        neighborhood / "neighbors.npy", ((rows[:, None] + nearest) % len(tokens)).astype(np.int32)
    )
    np.save(neighborhood / "distances.npy", (rows[:, None] + nearest / 8).astype(np.float32))


def plain(html: str) -> str:
    """The text of HTML."""
    return unescape(re.sub(r"<[^>]+>", "", html))


class Page:
    """Ids, headings, links, the text of every table cell by the id of its table, and all of the
    text in one line."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.text = " ".join(plain(html).split())
        self.ids = re.findall(r'\bid="([^"]+)"', html)
        self.headings = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
        self.links = re.findall(r'(?:src|href|srcset|data|action)="([^"]*)"', html)
        self.tables = {
            name: [
                [plain(cell) for cell in re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL)]
                for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
            ]
            for name, table in re.findall(
                r'<table[^>]*id="table-([\w-]+)"(.*?)</table>', html, re.DOTALL
            )
        }

    def row(self, table: str, *start: str) -> list[str]:
        """The one row of a table that starts so, without that start."""
        (found,) = [row for row in self.tables[table] if row[: len(start)] == list(start)]
        return found[len(start) :]


def reported() -> Page:
    """The page of the report of the current folder, which is made."""
    report.main()
    return Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
