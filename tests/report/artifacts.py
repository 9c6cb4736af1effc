"""A small set of all artifacts whose numbers are chosen here, so that each can be looked for in the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from lexveil.accounting.measurements import FORMULA
from lexveil.levels import Level
from lexveil.mechanisms.registry import MECHANISMS
from tasks import report
from tests.report.records import BACK_ENDS, dataset, named, recovered

ROOT = Path(__file__).parents[2]
SECRET = "zyxomatic"  # stands in every document, and may stand nowhere else
STRATEGIES = {"S1": "word", "S2": "gst"}
EPSILONS = (1.0, 10.0)
CONDITION = "kept tokens are unprotected and the same in both texts"
WORDS = {  # by falling frequency: what the sample of tokens is chosen from
    "word": ["the", "york", "new", "42", "city", "rain"],
    "gst": ["the", "new_york", "rain", "city", "the_rain", "new_york_city", "sun"],
    "mst": ["the", "new_york", "rain", "city", "sun"],
}
Key = tuple[str, str, float]


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


def set_grid(**grid: object) -> None:
    """Change the grid of params.yaml."""
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    params["grid"] |= grid
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def put_check(path: str, suite: str, summary: Mapping[str, Any] | None = None) -> None:
    expectations = [{"type": "t", "column": "c", "limits": {}, "checked": 1000, "unexpected": 0}] * 2
    put(
        f"checks/{path}.json", {"success": True, "suite": suite, "expectations": expectations, "summary": summary or {}}
    )


def counts(**known: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Tokens by class and action."""
    none = dict.fromkeys(("perturbed", "kept", "dropped", "sampled"), 0)
    return {kind: none | known.get(kind, {}) for kind in ("word", "stopword", "punctuation", "oov")}


def put_run(key: Key, unchanged: float | None, cosine: float | None, right: Mapping[str, int] | None = None) -> None:
    """One run of 3 texts: 20 tokens, of which the policy keeps 2 marks of punctuation (and 5 stop words in S1).

    Args:
        right: words that are recovered by band; see ``put_recovery``.
    """
    mechanism, strategy, epsilon = key
    is_clean = mechanism == "none"
    by_class = (
        counts(word={"kept": 12}, stopword={"kept": 6}, punctuation={"kept": 2})
        if is_clean
        else counts(
            word={"perturbed": 10 if strategy == "S1" else 15}, stopword={"kept": 5 * (strategy == "S1")},
            punctuation={"kept": 2}, oov={"sampled": 3},
        )
    )  # fmt: skip
    total = {action: sum(one[action] for one in by_class.values()) for action in by_class["word"]}
    release = {
        "formula": FORMULA, "because": [CONDITION, *([f"as {mechanism} draws"] if mechanism != "madlib" else [])],
        "statement": f"As far as said, d the {'' if is_clean else MECHANISMS[mechanism].metric}",
        "not_covered": "Not covered: other cuts." if strategy == "S2" else None,
    }  # fmt: skip
    experiment = ("Not private: somebody has the seed.", ["mode is experiment"], release)
    statement, because, in_release = ("The text is unchanged.", [], None) if is_clean else experiment
    folder = "/".join(map(str, ("private", *key)))
    put(f"{folder}/metrics.json", {f"n_{action}": n for action, n in total.items()} | {
        "n_documents": 3, "n_texts": 3, "n_tokens_in": 20, "n_tokens_out": 20, "n_words_in": 1234, "n_words_out": 5678,
        "by_class": by_class, "share_unchanged": unchanged, "mean_cosine": cosine,
        "unprotected_share": total["kept"] / 20, "epsilon_spent_mean": 3.25 * epsilon,
    })  # fmt: skip
    put(f"{folder}/record.json", {
        "lexveil": "9.8.7", "mode": "none" if is_clean else "experiment",
        "guarantee": {"formula": "none", "statement": statement, "because": because, "in_release": in_release},
    })  # fmt: skip
    put(f"{folder}/documents.parquet", {
        "dataset": ["alpha"], "doc_id": ["a"], "text": [SECRET], "text_b": pa.array([None], pa.string()),
    })  # fmt: skip
    if not is_clean:
        put_recovery(key, right)


def put_recovery(key: Key, right: Mapping[str, int] | None = None, *, with_model: bool = True) -> None:
    """16 words a band in alpha, of which 4, 2, 1 and 0 are recovered, at ε = 10 twice as many; S1 keeps stop words."""
    right = right or {"all": 7, "function": 4, "frequent": 2, "middle": 1, "rare": 0}
    times = 2 if key[2] == 10 else 1

    def entry(band: str) -> dict[str, Any]:
        n = {"all": 64}.get(band, 16) * (not (key[1] == "S1" and band == "function"))
        known = {"by_context": recovered(right[band] * times * bool(n), n), "without_output": recovered(0, n)}
        return {"n": n, "unchanged": recovered(0, n), "by_word": recovered(right[band] * bool(n), n)} | (
            known if with_model else dict.fromkeys(known)
        )

    alpha = {band: entry(band) for band in right}
    none = {band: {"n": 0} | dict.fromkeys(("unchanged", "by_word", "by_context", "without_output")) for band in right}
    put("/".join(map(str, ("recovery", *key))) + ".json", named(*key) | {
        "language_model": "kneser_ney" if with_model else None, "left_out": None, "all": alpha,
        "datasets": {"alpha": alpha, "beta": none},
    })  # fmt: skip


def put_plan(strategy: str, epsilon: float) -> None:
    """Data set alpha: 2 texts of 3 and 5 words, B = 4 ε; beta: one text of 7 words."""
    per_token = {"S1": [2.0, 2.0, 3.5], "S2": [1.0, 1.0, 1.75]}[strategy]
    put(f"plans/madlib/{strategy}/{epsilon}.parquet", {
        "dataset": ["alpha", "alpha", "beta"], "doc_id": ["a", "b", "c"], "field": ["text"] * 3,
        "n_words": [3, 5, 7], "n_tokens": [3, 5, 7], "n_perturbed": [2, 2, 2],
        "budget": [4 * epsilon, 4 * epsilon, 7 * epsilon], "epsilon_per_token": [epsilon * one for one in per_token],
    })  # fmt: skip


def put_scores(key: Key, utility: float, adaptive: float, on_clean: float = 0.4375, sd: float | None = 0.0625) -> None:
    """Data set alpha has label and attribute, beta neither; nothing but utility and attack is measured."""
    alpha, beta = dataset(utility=utility, adaptive=adaptive, static=adaptive / 2, on_clean=on_clean, sd=sd), dataset()
    datasets = {
        name: {part: one[part] for part in ("utility", "attack")} for name, one in (("alpha", alpha), ("beta", beta))
    }
    put("/".join(map(str, ("evaluation", *key))) + ".json", named(*key) | BACK_ENDS | {"datasets": datasets})


def put_grid_scores(mechanism: str = "madlib") -> None:
    """Utility 0.5 and 0.75 at the two epsilons, the attack 0.25 and 0.5; 0.125 less utility in S2."""
    for strategy, less in (("S1", 0.0), ("S2", 0.125)):
        for epsilon, utility, adaptive in ((1.0, 0.5, 0.25), (10.0, 0.75, 0.5)):
            put_scores((mechanism, strategy, epsilon), utility - less, adaptive)


def statistic(
    epsilon: float, n_w: float | None = None, s_w: float | None = None, exact: bool = False, refused: str | None = None
) -> dict[str, Any]:
    """A row whose quartiles are 0.5 around the means, and whose expectations are 0.25 above them."""

    def around(mean: float | None, shift: float = 0.0) -> dict[str, float] | None:
        parts = {"mean": 0.0, "q25": -0.5, "median": 0.0, "q75": 0.5}
        return None if mean is None else {name: mean + shift + part for name, part in parts.items()}

    return {
        "epsilon": epsilon, "n_words": 2, "n_draws": 100, "refused": refused, "n_w": around(n_w), "s_w": around(s_w),
        "n_w_exact": around(n_w, 0.25) if exact else None, "s_w_expected": around(s_w, 0.25) if exact else None,
    }  # fmt: skip


def put_deniability(
    mechanism: str, segmentation: str, rows: Sequence[Mapping[str, Any]], words: Sequence[int] = (1, 3)
) -> None:
    put(f"deniability/{mechanism}/{segmentation}.json", {
        "mechanism": mechanism, "segmentation": segmentation, "n_shared": 5, "word_rows": words, "statistics": rows,
    })  # fmt: skip


def put_others(refused: str | None = None) -> None:
    """Add tem and diffractor_geometric to the grid, of S1 alone."""
    set_grid(mechanisms=["madlib", "tem", "diffractor_geometric"], strategies=["S1"])
    for mechanism in ("tem", "diffractor_geometric"):
        put_grid_scores(mechanism)
        for epsilon in EPSILONS:
            put_run((mechanism, "S1", epsilon), 0.5, 0.5)
        first = statistic(1.0, refused=refused) if refused else statistic(1.0, 20.0, 90.0, exact=True)
        put_deniability(mechanism, "word", [first, statistic(10.0, 99.0, 1.5, exact=True)])


def put_levels(epsilons: Sequence[float]) -> None:
    """Runs of S1 at two levels, and at base epsilons."""
    set_grid(strategies=["S1"], epsilons=[*epsilons, "r0.2", "r0.05"])
    for level, utility in ((Level(0.05, 2.5), 0.5), (Level(0.2, 7.75), 0.625)):
        calibration = {"mechanism": "madlib", "strategy": "S1", "recovery": level.share, "band": "content"}
        put(f"plans/madlib/S1/{level}.json", calibration | {
            "epsilon": level.epsilon, "achieved": {"epsilon": level.epsilon, "bands": {}},
        })  # fmt: skip
        put_check(f"plans/madlib/S1/{level}", f"plans/madlib/S1/{level}")
        put_run(("madlib", "S1", level), 0.25, 0.5)
        put_scores(("madlib", "S1", level), utility, 0.25)


def make_artifacts() -> None:
    """All artifacts of two strategies at two epsilons, in the current folder."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    Path("params.yaml").write_text(yaml.safe_dump(params | {"seed": 77}), encoding="utf-8")
    set_grid(mechanisms=["madlib"], strategies=list(STRATEGIES), epsilons=list(EPSILONS))

    put_run(("none", "none", 0.0), None, None)
    for strategy, segmentation in STRATEGIES.items():
        for epsilon in EPSILONS:
            put_plan(strategy, epsilon)
            put_check(f"plans/madlib/{strategy}/{epsilon}", f"plans/{strategy}/{epsilon}")
        put_deniability("madlib", segmentation, [statistic(1.0, 2.5, 80.0), statistic(10.0, 60.5, 30.0)])
    put_run(("madlib", "S1", 1.0), 0.0625, 0.25)
    put_run(("madlib", "S1", 10.0), 0.5, 0.75)
    put_run(("madlib", "S2", 1.0), 0.125, 0.375)
    put_run(("madlib", "S2", 10.0), 0.625, -0.125)
    for suite in ("corpus", "collocations", "outputs", "evaluation"):
        put_check(suite, suite)
    put_scores(("none", "none", 0.0), 0.875, 0.625, on_clean=0.875)
    put_grid_scores()
    covered = {"n_texts": 2, "n_words": 8, "n_covered": 6, "n_oov": 2, "coverage": 0.75}
    everything = covered | {"n_covered": 8, "n_oov": 0, "coverage": 1.0}
    coverage = {"alpha": dict.fromkeys(WORDS, covered), "beta": dict.fromkeys(WORDS, everything)}
    put_check("coverage", "vocab", {"coverage": coverage})
    put("metrics/ngrams.json", {
        "n_documents": 11, "n_sentences": 50, "n_tokens": 1025, "n_words": 333, "n_bigrams": 24, "n_trigrams": 4,
    })  # fmt: skip
    put("ngrams/words.parquet", {
        "word_id": pa.array([0, 1, 2, 3], pa.int32()), "word": [",", "the", "rain", "new"], "count": [99, 100, 10, 1],
        "kind": ["punctuation", "connector", "word", "word"],
    })  # fmt: skip
    # Twelve bigrams: ten seen twice, with the highest PMI; two seen often.
    put("collocations/bigrams.parquet", {
        "first_word": [*(f"rare{i}" for i in range(10)), "new", "heavy"],
        "second_word": [*["pair"] * 10, "york", "rain"],
        "count": [2] * 10 + [40, 30], "pmi_bits": [15.0 + i / 10 for i in range(10)] + [5.25, 7.75],
    })  # fmt: skip
    put("collocations/trigrams.parquet", {
        "first_word": ["new"], "second_word": ["york"], "third_word": ["city"], "count": [9], "pmi_bits": [12.5],
    })  # fmt: skip
    for name, tokens in WORDS.items():
        put_segmentation(name, tokens)


def put_segmentation(name: str, tokens: Sequence[str]) -> None:
    """An embedding: the neighbours of row i are the rows after it, the j-th at distance i + j / 8."""
    lengths = [token.count("_") for token in tokens]
    put(f"metrics/segmented/{name}.json", {
        "n_words": 1025, "n_tokens": 1000, "n_unigram_tokens": 980, "n_bigram_tokens": 15, "n_trigram_tokens": 5,
    })  # fmt: skip
    put(f"metrics/embeddings/{name}.json", {
        "n_tokens": len(tokens), "norm_median": 1.5, "tokens_covered": 900,
        **{f"n_{length}s": lengths.count(n) for n, length in enumerate(("unigram", "bigram", "trigram"))},
    })  # fmt: skip
    put(f"embeddings/{name}/meta.json", {"dimensions": 13, "dtype": "float32", "n_tokens": len(tokens)})
    Path(f"artifacts/embeddings/{name}/words.txt").write_text("".join(f"{one}\n" for one in tokens), encoding="utf-8")
    v = len(tokens)
    np.save(f"artifacts/embeddings/{name}/counts.npy", 100 - 10 * np.arange(v))
    folder = Path(f"artifacts/neighborhoods/{name}")
    folder.mkdir(parents=True)
    ids = (np.arange(v)[:, None] + np.arange(1, v)[None, :]) % v
    np.save(folder / "neighbors.npy", ids.astype(np.int32))
    np.save(folder / "distances.npy", (np.arange(v)[:, None] + np.arange(1, v)[None, :] / 8).astype(np.float32))


class Page(HTMLParser):
    """Headings, links, the text of every table cell by the id of its table, and all of the text in one line."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.headings: list[str] = []
        self.links: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._texts: list[str] = []
        self._into: list[str] | None = None
        self.feed(html)
        self.text = " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.links += [str(known[key]) for key in ("src", "href", "srcset", "data", "action") if key in known]
        if tag == "table":
            self.tables[str(known["id"]).removeprefix("table-")] = []
        elif tag == "tr":
            list(self.tables.values())[-1].append([])
        elif tag in ("td", "th", "h2"):
            self._into = self.headings if tag == "h2" else list(self.tables.values())[-1][-1]
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "h2"):
            self._into = None

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        if self._into is not None:
            self._into[-1] += data

    def row(self, table: str, *start: str) -> list[str]:
        """The one row of a table that starts so, without that start."""
        (found,) = [row for row in self.tables[table] if row[: len(start)] == list(start)]
        return found[len(start) :]


def reported() -> Page:
    """The page of the report of the current folder, which is made."""
    report.main()
    return Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
