"""The report, made of a small set of artifacts whose numbers are chosen here, so that each can be looked for."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from examples.replication.__main__ import main as replication
from lexveil.accounting.measurements import FORMULA
from lexveil.config import load_params
from lexveil.errors import CheckFailed, MissingArtifact
from lexveil.levels import Level
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report import epsilon_units, formatting
from lexveil.report.figures import Series, over_epsilon, side_by_side, spaced
from lexveil.report.sections import neighbours
from lexveil.report.sections.corpus import pmi_histogram
from lexveil.report.svg import drawing, to_svg
from lexveil.report.table import Column, Table
from lexveil.runtime.stage import stage_main
from tasks import report
from tests.shared_trees import share

pytestmark = pytest.mark.slow

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


def put(path: str, value: object) -> None:
    file = Path("artifacts") / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def put_table(path: str, columns: dict) -> None:
    file = Path("artifacts") / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def put_check(path: str, suite: str, summary: dict) -> None:
    expectations = [{"type": "t", "column": "c", "limits": {}, "checked": 1000, "unexpected": 0}] * 2
    put(path, {"success": True, "suite": suite, "expectations": expectations, "summary": summary})


def put_run(mechanism: str, strategy: str, epsilon: float, *, unchanged: float | None, cosine: float | None) -> None:
    """One run of 3 texts: 20 tokens, of which the policy keeps 2 marks of punctuation (and 5 stop words in S1)."""
    kept = {"none": {"word": 12, "stopword": 6, "punctuation": 2}, "S1": {"stopword": 5, "punctuation": 2}}
    by_class = {
        kind: {"perturbed": 0, "kept": kept.get(strategy, {"punctuation": 2}).get(kind, 0), "dropped": 0, "sampled": 0}
        for kind in ("word", "stopword", "punctuation", "oov")
    }
    if mechanism != "none":
        by_class["oov"]["sampled"] = 3
        by_class["word"]["perturbed"] = 15 if strategy == "S2" else 10
    total = {action: sum(one[action] for one in by_class.values()) for action in by_class["word"]}
    metrics = {f"n_{action}": n for action, n in total.items()} | {
        "n_documents": 3, "n_texts": 3, "n_tokens_in": 20, "n_tokens_out": 20, "n_words_in": 1234, "n_words_out": 5678,
        "by_class": by_class, "share_unchanged": unchanged, "mean_cosine": cosine,
        "unprotected_share": total["kept"] / 20, "epsilon_spent_mean": 3.25 * epsilon,
    }  # fmt: skip
    guarantee = {
        "formula": "none",
        "statement": "Not private: somebody has the seed.",
        "because": ["mode is experiment"],
        "in_release": {
            "formula": FORMULA,
            "statement": f"As far as said, d the {MECHANISMS[mechanism].metric if mechanism != 'none' else 'nothing'}",
            "because": [CONDITION],
            "not_covered": "Not covered: other cuts." if strategy == "S2" else None,
        },
    }
    record = {
        "lexveil": "9.8.7", "mode": "experiment", "guarantee": guarantee,
        "policy": {"stopwords": "keep", "punctuation": "keep", "oov": "sample"},
    }  # fmt: skip
    if mechanism == "none":
        record |= {
            "mode": "none",
            "guarantee": guarantee | {"statement": "The text is unchanged.", "because": [], "in_release": None},
        }
    folder = f"private/{mechanism}/{strategy}/{epsilon}"
    put(f"{folder}/metrics.json", metrics)
    put(f"{folder}/record.json", record)
    documents = {"dataset": ["alpha"], "doc_id": ["a"], "text": [SECRET], "text_b": pa.array([None], pa.string())}
    put_table(f"{folder}/documents.parquet", documents)
    if mechanism != "none":
        put_recovery(mechanism, strategy, epsilon)


def part_of(n_right: int, n: int) -> dict:
    """Of no word there is no share; the interval is a quarter wide."""
    part = n_right / n if n else None
    return {"share": part, "low": max(0.0, (part or 0.0) - 0.125), "high": min(1.0, (part if n else 1.0) + 0.125)}


def put_recovery(mechanism: str, strategy: str, epsilon: float, *, with_model: bool = True, **listed: int) -> None:
    """16 words a band in alpha, of which 4, 2, 1 and 0 are recovered, at ε = 10 twice as many; S1 keeps stop words."""
    right = {"all": 7, "function": 4, "frequent": 2, "middle": 1, "rare": 0} | listed

    def entry(band: str, times: int) -> dict:
        n = {"all": 64}.get(band, 16) * (not (strategy == "S1" and band == "function"))
        known = {"by_context": part_of(right[band] * times, n), "without_output": part_of(0, n)}
        return {
            "n": n, "unchanged": part_of(0, n), "by_word": part_of(right[band], n),
            **(known if with_model else dict.fromkeys(known)),
        }  # fmt: skip

    alpha = {band: entry(band, 2 if epsilon == 10 else 1) for band in right}
    none = {band: {"n": 0} | dict.fromkeys(("unchanged", "by_word", "by_context", "without_output")) for band in right}
    put(f"recovery/{mechanism}/{strategy}/{epsilon}.json", {
        "mechanism": mechanism, "strategy": strategy, "epsilon": epsilon,
        "language_model": "kneser_ney" if with_model else None, "weight": 0.5, "candidates": 32, "left_out": None,
        "sensitive_sha256": None, "all": alpha, "datasets": {"alpha": alpha, "beta": none},
    })  # fmt: skip


def put_plan(strategy: str, epsilon: float) -> None:
    """Data set alpha: 2 texts of 3 and 5 words, B = 4 ε; beta: one text of 7 words."""
    per_token = {"S1": [2.0, 2.0, 3.5], "S2": [1.0, 1.0, 1.75]}[strategy]
    put_table(
        f"plans/madlib/{strategy}/{epsilon}.parquet",
        {
            "dataset": ["alpha", "alpha", "beta"],
            "doc_id": ["a", "b", "c"],
            "field": ["text"] * 3,
            "n_words": [3, 5, 7],
            "n_tokens": [3, 5, 7],
            "n_perturbed": [2, 2, 2],
            "budget": [4 * epsilon, 4 * epsilon, 7 * epsilon],
            "epsilon_per_token": [epsilon * one for one in per_token],
        },
    )


def put_deniability(mechanism: str, segmentation: str, rows: list[dict], words: tuple[int, ...] = (1, 3)) -> None:
    put(f"deniability/{mechanism}/{segmentation}.json", {
        "mechanism": mechanism, "segmentation": segmentation, "metric": "m", "n_vocabulary": 6, "n_shared": 5,
        "word_rows": list(words), "statistics": rows,
    })  # fmt: skip


def macro_f1(mean: float, sd: float | None = 0.0625) -> dict:
    """Accuracy and micro F1 are 0.125 above macro F1."""
    values = {"macro_f1": mean, "micro_f1": mean + 0.125, "accuracy": mean + 0.125}
    return {name: {"mean": value, "sd": sd, "each": [value] * 3} for name, value in values.items()}


def majority(macro: float) -> dict:
    return {"macro_f1": macro, "micro_f1": macro + 0.125, "accuracy": macro + 0.125}


def put_scores(
    mechanism: str, strategy: str, epsilon: float, *, utility: float, adaptive: float, on_clean: float, sd=0.0625
) -> None:
    """Data set alpha has label and attribute, beta neither; the static attack has half of the adaptive one's score."""
    counts = {"left_out": None, "held_out": "dev", "n_train": 300, "n_learnt": 270, "n_left_out": 0}
    scores = [
        {"private": macro_f1(utility, sd), "clean": macro_f1(on_clean, sd)},
        {"static": macro_f1(adaptive / 2, sd), "adaptive": macro_f1(adaptive, sd)},
    ]
    label, attribute = (
        counts | {"n_classes": n, "n_test": n_test, "majority": majority(low), "scores": one}
        for n, n_test, low, one in zip((2, 10), (100, 25), (0.375, 0.125), scores, strict=True)
    )
    neither = {name: {"left_out": f"no {name} because of {name}"} for name in ("utility", "attack")}
    put(f"evaluation/{mechanism}/{strategy}/{epsilon}.json", {
        "mechanism": mechanism, "strategy": strategy, "epsilon": epsilon, "classifier": "linear", "shuffles": 3,
        "datasets": {"alpha": {"utility": label, "attack": attribute | {"n_left_out": 7}}, "beta": neither},
    })  # fmt: skip


def put_grid_scores(mechanism: str = "madlib") -> None:
    """Utility 0.5 and 0.75 at the two epsilons, the attack 0.25 and 0.5; 0.125 less utility in S2."""
    for strategy, less in (("S1", 0.0), ("S2", 0.125)):
        for epsilon, utility, adaptive in ((1.0, 0.5, 0.25), (10.0, 0.75, 0.5)):
            put_scores(mechanism, strategy, epsilon, utility=utility - less, adaptive=adaptive, on_clean=0.4375)


def spread(mean: float) -> dict[str, float]:
    return {"mean": mean, "q25": mean - 0.5, "median": mean, "q75": mean + 0.5}


def statistic(epsilon: float, n_w: float | None, s_w: float | None, *, exact: bool = False, refused: str | None = None):
    """A row whose expectations are 0.25 above the means."""
    return {
        "epsilon": epsilon, "n_words": 2, "n_draws": 100, "refused": refused,
        "n_w": None if n_w is None else spread(n_w), "s_w": None if s_w is None else spread(s_w),
        "n_w_exact": spread(n_w + 0.25) if exact else None, "s_w_expected": spread(s_w + 0.25) if exact else None,
    }  # fmt: skip


def make_artifacts() -> None:
    """All artifacts of two strategies at two epsilons, in the current folder."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["seed"] = 77
    params["grid"] = {"mechanisms": ["madlib"], "strategies": list(STRATEGIES), "epsilons": list(EPSILONS)}
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")

    put_run("none", "none", 0.0, unchanged=None, cosine=None)
    for strategy in STRATEGIES:
        for epsilon in EPSILONS:
            put_plan(strategy, epsilon)
            put_check(f"checks/plans/madlib/{strategy}/{epsilon}.json", f"plans/{strategy}/{epsilon}", {})
    put_run("madlib", "S1", 1.0, unchanged=0.0625, cosine=0.25)
    put_run("madlib", "S1", 10.0, unchanged=0.5, cosine=0.75)
    put_run("madlib", "S2", 1.0, unchanged=0.125, cosine=0.375)
    put_run("madlib", "S2", 10.0, unchanged=0.625, cosine=-0.125)
    for segmentation in STRATEGIES.values():
        put_deniability("madlib", segmentation, [statistic(1.0, 2.5, 80.0), statistic(10.0, 60.5, 30.0)])
    put_check("checks/corpus.json", "corpus", {})
    put_check("checks/collocations.json", "collocations", {})
    put_check("checks/outputs.json", "outputs", {})
    put_check("checks/evaluation.json", "evaluation", {})
    put_scores("none", "none", 0.0, utility=0.875, adaptive=0.625, on_clean=0.875)
    put_grid_scores()
    covered = {"n_texts": 2, "n_words": 8, "n_covered": 6, "n_oov": 2, "coverage": 0.75}
    everything = covered | {"n_covered": 8, "n_oov": 0, "coverage": 1.0}
    coverage = {"alpha": dict.fromkeys(WORDS, covered), "beta": dict.fromkeys(WORDS, everything)}
    put_check("checks/coverage.json", "vocab", {"coverage": coverage})

    put("metrics/ngrams.json", {
        "n_documents": 11, "n_sentences": 50, "n_tokens": 1025, "n_words": 333, "n_bigrams": 24, "n_trigrams": 4,
        "bigram_tokens": 900, "trigram_tokens": 800,
    })  # fmt: skip
    put_table("ngrams/words.parquet", {
        "word_id": pa.array([0, 1, 2, 3], pa.int32()), "word": [",", "the", "rain", "new"], "count": [99, 100, 10, 1],
        "kind": ["punctuation", "connector", "word", "word"],
    })  # fmt: skip
    # Twelve bigrams: ten seen twice, with the highest PMI; two seen often.
    rare = [f"rare{i}" for i in range(10)]
    put_table("collocations/bigrams.parquet", {
        "first_word": [*rare, "new", "heavy"], "second_word": [*["pair"] * 10, "york", "rain"],
        "count": [2] * 10 + [40, 30], "pmi_bits": [15.0 + i / 10 for i in range(10)] + [5.25, 7.75],
    })  # fmt: skip
    put_table("collocations/trigrams.parquet", {
        "first_word": ["new"], "second_word": ["york"], "third_word": ["city"], "count": [9], "pmi_bits": [12.5],
    })  # fmt: skip
    for name, tokens in WORDS.items():
        lengths = [token.count("_") for token in tokens]
        by_length = dict(zip(("unigram", "bigram", "trigram"), (lengths.count(i) for i in range(3)), strict=True))
        put(f"metrics/segmented/{name}.json", {
            "n_sentences": 50, "n_words": 1025, "n_tokens": 1000, "n_unigram_tokens": 980, "n_bigram_tokens": 15,
            "n_trigram_tokens": 5, "pmi_bits": 1.0,
        })  # fmt: skip
        put(f"metrics/embeddings/{name}.json", {f"n_{length}s": n for length, n in by_length.items()} | {
            "n_tokens": len(tokens), "norm_largest": 3.0, "norm_median": 1.5, "tokens_covered": 900,
        })  # fmt: skip
        put(f"embeddings/{name}/meta.json", {"dimensions": 13, "dtype": "float32", "n_tokens": len(tokens)})
        Path(f"artifacts/embeddings/{name}/words.txt").write_text(
            "".join(f"{one}\n" for one in tokens), encoding="utf-8"
        )
        v = len(tokens)
        np.save(f"artifacts/embeddings/{name}/counts.npy", 100 - 10 * np.arange(v))
        folder = Path(f"artifacts/neighborhoods/{name}")
        folder.mkdir(parents=True)
        # The neighbours of row i are the rows after it, the j-th at distance i + j / 8.
        ids = (np.arange(v)[:, None] + np.arange(1, v)[None, :]) % v
        np.save(folder / "neighbors.npy", ids.astype(np.int32))
        np.save(folder / "distances.npy", (np.arange(v)[:, None] + np.arange(1, v)[None, :] / 8).astype(np.float32))


class Page(HTMLParser):
    """Headings, links, and the text of every table cell by the id of its table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.links: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._table = ""
        self._into: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.links += [value for key, value in attrs if key in ("src", "href", "srcset", "data", "action")]
        if tag == "table":
            self._table = known["id"].removeprefix("table-")
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self._into = self.tables[self._table][-1]
            self._into.append("")
        elif tag == "h2":
            self._into = self.headings
            self._into.append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th", "h2"):
            self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1] += data

    def row(self, table: str, *start: str) -> list[str]:
        """The one row of a table that starts so, without that start."""
        (found,) = [row for row in self.tables[table] if row[: len(start)] == list(start)]
        return found[len(start) :]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with all artifacts and the report of them."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_artifacts()
        report.main()
    share(folder)
    return folder


@pytest.fixture
def project(made, tmp_path, monkeypatch):
    """A copy of it without the report, which a test may break; it is the current folder."""
    folder = tmp_path / "project"
    shutil.copytree(made, folder)
    shutil.rmtree(folder / "artifacts/report")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def html(made):
    return (made / "artifacts/report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_sections_stand_in_the_order_a_reader_needs(page):
    assert page.headings == [
        "Which run to take",
        "What this is, and what it promises",
        "What to read first",
        "What is kept where equally much is given away",
        "Results per run",
        "What a best-informed reader gets back",
        "Samples: what becomes of a text",
        "Utility and attacks",
        "Plausible deniability",
        "Data sets and budgets",
        "Vocabulary coverage",
        "Corpus and n-grams",
        "Top collocations",
        "Sample tokens and their neighbours",
        "Checks",
        "Parameters, versions, and how to reproduce",
    ]


def test_guarantee_is_none_and_says_what_a_release_would_promise(html):
    box = html[html.index('<div class="box warn">') : html.index("What is protected, and what is not")]
    plain = " ".join(re.sub(r"<[^>]+>", " ", box).split())
    assert "none: the seed is known" in plain
    assert "4 runs: madlib with strategy S1 and S2" in plain
    assert "Not private: somebody has the seed." in plain
    assert "d the Euclidean distance of the embedding" in plain
    assert "exp(Σ ε_i·d(w_i,w&#39;_i))·Pr[M(D&#39;)=y]" in plain
    assert (
        "kept tokens are unprotected and the same in both texts Not covered" in plain
    )  # of all runs, so without a name
    assert "Not covered: other cuts. (S2 only)" in plain
    assert plain.index("clean baseline") < plain.index("The text is unchanged.")


def test_exposure_counts_by_class(page):
    assert page.row("exposure", "madlib", "S1", "1, 10") == ["10", "3", "0", "0", "5", "2", "0", "35.0%"]
    assert page.row("exposure", "madlib", "S2", "1, 10") == ["15", "3", "0", "0", "0", "2", "0", "10.0%"]
    assert page.row("exposure", "none", "none", "–") == ["0", "0", "0", "12", "6", "2", "0", "100.0%"]


def test_exposure_that_differs_by_epsilon_gets_a_row_of_its_own(project):
    file = project / "artifacts/private/madlib/S1/10.0/metrics.json"
    metrics = json.loads(file.read_text())
    metrics["by_class"]["oov"] = {"perturbed": 0, "kept": 3, "dropped": 0, "sampled": 0}
    file.write_text(json.dumps(metrics))
    report.main()
    page = Page((project / "artifacts/report/index.html").read_text(encoding="utf-8"))
    assert page.row("exposure", "madlib", "S1", "1")[6] == "0"
    assert page.row("exposure", "madlib", "S1/10", "10")[6] == "3"


def test_results_per_run(page):
    # Mean budget: (2 texts × 4 ε + 7 ε) / 3.
    assert page.row("results", "madlib", "S1", "1") == ["6.2%", "10.9%", "0.250", "35.0%", "3.25", "5.00"]
    assert page.row("results", "madlib", "S2", "10") == ["62.5%", "21.9%", "-0.125", "10.0%", "32.50", "50.00"]
    assert page.row("results", "none", "none", "–") == ["–", "–", "–", "100.0%", "–", "–"]
    assert page.row("tokens", "madlib", "S2", "1") == ["3", "20", "20", "1,234", "5,678", "15", "3", "2", "0"]
    assert len(page.tables["results"]) == len(page.tables["tokens"]) == 2 + 5  # two lines of headings


def test_recovery_by_reader_and_band(page):
    assert page.row("recovery", "madlib", "S1", "1") == [
        "64", "0.0% (0.0–12.5)", "10.9% (0.0–23.4)", "10.9% (0.0–23.4)", "0.0% (0.0–12.5)",
    ]  # fmt: skip
    assert page.row("recovery", "madlib", "S2", "10")[2:4] == ["10.9% (0.0–23.4)", "21.9% (9.4–34.4)"]
    heads = page.tables["recovery-bands"][0][-4:]
    assert heads == ["Function words", "Frequent words", "Middle words", "Rare words"]
    bands = page.row("recovery-bands", "madlib", "S2", "10")
    assert bands[::2] == ["50.0% (37.5–62.5)", "25.0% (12.5–37.5)", "12.5% (0.0–25.0)", "0.0% (0.0–12.5)"]
    assert page.row("recovery-bands", "madlib", "S1", "1")[:2] == ["–", "–"]  # stop words are kept


def test_recovery_without_a_language_model_is_by_the_word(project):
    for strategy in STRATEGIES:
        for epsilon in EPSILONS:
            put_recovery("madlib", strategy, epsilon, with_model=False, listed=3)
    report.main()
    page = Page((project / "artifacts/report/index.html").read_text(encoding="utf-8"))
    assert page.row("recovery", "madlib", "S2", "10")[2:] == ["10.9% (0.0–23.4)", "–", "–"]
    assert page.tables["recovery-bands"][0][-1] == "Listed words"
    assert page.row("recovery-bands", "madlib", "S2", "10")[-1] == "18.8% (6.2–31.2)"


def test_budgets_per_data_set(page):
    assert page.tables["budgets"][1] == ["Data set", "Texts", "Avg. words / text", "1", "10"]
    assert page.row("budgets", "alpha") == ["2", "4.00", "4.00", "40.00"]
    assert page.row("budgets", "beta") == ["1", "7.00", "7.00", "70.00"]
    # S2: two texts, two tokens each, ε a token; so 2 ε a text, half of B.
    assert page.row("per-token", "S2", "alpha") == ["2.00", "1.00", "10.00"]
    assert page.row("spent", "S2", "alpha") == ["50.0%", "2.00", "20.00"]
    assert page.row("spent", "S1", "beta") == ["100.0%", "7.00", "70.00"]


def test_bound_is_exp_of_mean_epsilon_times_median_distance(page):
    # word: nearest distances 0.125, 1.125, … 5.125; S1 spends (2 + 2 + 3.5) / 3 = 2.5 a token at base ε 1.
    assert page.row("bound", "S1") == ["2.625", f"×{np.exp(2.5 * 2.625):.0f}", "×10²⁹"]


def put_others(refused: str | None = None) -> Page:
    """Add tem and diffractor_geometric to the grid, and make the report."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["grid"] |= {"mechanisms": ["madlib", "tem", "diffractor_geometric"], "strategies": ["S1"]}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for mechanism in ("tem", "diffractor_geometric"):
        put_grid_scores(mechanism)
        for epsilon in EPSILONS:
            put_run(mechanism, "S1", epsilon, unchanged=0.5, cosine=0.5)
            file = Path(f"artifacts/private/{mechanism}/S1/{epsilon}/record.json")
            record = json.loads(file.read_text())
            record["guarantee"]["in_release"]["because"].append(f"as {mechanism} draws")
            file.write_text(json.dumps(record))
        first = statistic(1.0, None, None, refused=refused) if refused else statistic(1.0, 20.0, 90.0, exact=True)
        put_deniability(mechanism, "word", [first, statistic(10.0, 99.0, 1.5, exact=True)])
    report.main()
    return Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))


def figure_of(html: str, name: str) -> ElementTree.Element:
    (found,) = re.findall(rf'<svg[^>]*aria-labelledby="{name}-title.*?</svg>', html, flags=re.DOTALL)
    return ElementTree.fromstring(found)


def test_scores_by_data_set(page):
    """The layouts are tested in tests/report; here, that the page has them, of what was measured only."""
    assert page.tables["attack-1"][1] == ["Mechanism", "Strategy", "Score", "Clean texts", "Majority", "1", "10"]
    assert page.row("attack-1", "madlib", "S2", "utility F1") == [
        "0.875 ± 0.062", "0.375", "0.375 ± 0.062", "0.625 ± 0.062",
    ]  # fmt: skip
    assert page.row("attack-1", "madlib", "S1", "static F1") == [
        "0.312 ± 0.062", "0.125", "0.125 ± 0.062", "0.250 ± 0.062",
    ]  # fmt: skip
    assert page.row("attack-1", "madlib", "S1", "adaptive F1")[:2] == ["0.625 ± 0.062", "0.125"]
    # 0.5/0.875 − 0.25/0.625 and 0.75/0.875 − 0.5/0.625
    assert page.row("attack-1", "madlib", "S1", "relative gain") == ["–", "–", "0.171", "0.057"]
    assert page.row("on-clean-1", "madlib", "S1")[2:] == ["0.562 ± 0.062"] * 2
    named = {name for name in page.tables if re.fullmatch(r"(utility|on-clean|attack|static|cosine|mean-.*)-\d", name)}
    assert named == {"utility-1", "on-clean-1", "attack-1", "static-1"}


def test_what_to_read_first(page):
    assert page.row("glance", "alpha", "clean texts")[3:] == ["0.875 ± 0.062", "0.625 ± 0.062", "–", "–", "–"]
    weakest = page.row("glance", "alpha", "weakest adaptive attack")
    assert weakest[:3] == ["madlib", "S1", "1"] and weakest[-2:] == ["10.9% (0.0–23.4)", "0.0% (0.0–12.5)"]
    assert not [row for row in page.tables["glance"] if row[0] == "beta"]


def test_data_sets(page):
    assert page.tables["datasets"][1][:6] == ["Data set", "Documents", "Texts", "Words", "word tokens", "gst tokens"]
    assert page.row("datasets", "alpha") == ["2", "2", "4.00", "4.00", "4.00", "2", "300", "100", "10", "300", "25"]
    assert page.row("datasets", "beta") == ["1", "1", "7.00", "7.00", "7.00"] + ["–"] * 6


def test_scores_say_how_many_documents_they_are_of_and_what_is_left_out(html):
    plain = " ".join(html.split())
    # 1.96 · √(1/400) and 1.96 · √(1/100)
    assert "Label: 2 classes, learnt from 270 of 300 documents of split train, scored on 100 of split dev." in plain
    assert "is known to ± 0.10 (95%). Attribute: 10 classes" in plain and "is known to ± 0.20 (95%)." in plain
    assert plain.count("7 documents of these splits are left out: their attribute is unknown or rare") == 2
    assert "Not measured in these runs: cosine similarity, perplexity and membership inference." in plain
    assert "their label is unknown" not in plain
    assert "<li>beta, utility: no utility because of utility</li><li>beta, attack: no attack" in plain
    assert (
        "learns from the train split of a data set" in plain
        and "over 3 trainings on 90.0% of the train split, chosen and ordered anew" in plain
    )


def test_scores_as_csv_are_means_and_deviations(html):
    table = re.search(r'<table id="table-attack-1".*?</figure>', html, flags=re.DOTALL)[0]
    assert 'data-raw="0.3125"' in table  # what sorting compares
    lines = unquote(re.search(r'href="data:text/csv;charset=utf-8,([^"]*)"', table)[1]).splitlines()
    assert (
        lines[0] == "mechanism,strategy,score,clean,clean_sd,majority,epsilon_1,epsilon_1_sd,epsilon_10,epsilon_10_sd"
    )
    assert lines[1] == "madlib,S1,utility F1,0.875,0.0625,0.375,0.5,0.0625,0.75,0.0625"
    assert lines[4].startswith("madlib,S1,relative gain,,,,0.17") and lines[4].endswith(",")


def test_every_figure_has_its_numbers_as_csv(html):
    figures = re.findall(r"<figure><figcaption>.*?</figure>", html, flags=re.DOTALL)
    files = {}
    for figure in figures:
        (found,) = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)" download="([^"]*)"', figure)
        files[found[1]] = unquote(found[0]).splitlines()
    assert len(figures) == len(files) == html.count("<svg")
    assert files["utility-1-madlib.csv"][0].endswith(
        "utility_private_macro_f1_sd,utility_private_macro_f1_standard_error"
    )
    assert files["utility-1-madlib.csv"][1].startswith("madlib,S1,1.0,0.5,0.0625,0.080039053")
    assert files["tradeoff-1-madlib.csv"][1].startswith("madlib,S1,1.0,0.25,0.0625,")
    assert files["tradeoff-1-madlib.csv"][-1].startswith("none,none,0.0,0.625,0.0625,")
    assert files["n-w-gst.csv"][1:] == ["madlib,1.0,2.5,2.0,3.0,", "madlib,10.0,60.5,60.0,61.0,"]
    assert files["cosine-madlib.csv"][-1] == "S2,10.0,-0.125"
    assert files["lengths.csv"][1] == "word,1,0.98" and files["outcomes.csv"][1] == "S1,noise,0.5"


def test_error_bars_are_standard_errors(html):
    bars = [
        one
        for one in figure_of(html, "utility-1-madlib").iter("path")
        if "stroke-width: 2.2" in one.get("style", "") and "var(--c" in one.get("style", "")
    ]
    assert len(bars) == 4  # two strategies at two epsilons
    # The axis from 0 to 1 is 295 + 18 − 58 − 50 pixels high; S1 at ε 1 is 0.5, standard error √(0.0625² + 0.25/100).
    y = [float(number) for number in re.findall(r"[ML] \S+ (\S+)", bars[0].get("d"))]
    assert abs(y[0] - y[1]) == pytest.approx(2 * np.hypot(0.0625, 0.05) * 205, rel=1e-3)


def test_tradeoff_of_utility_and_attack(html):
    root = figure_of(html, "tradeoff-1-madlib")
    described = root.find("desc").text
    assert "S1: utility 0.500 at attack 0.250, utility 0.750 at attack 0.500." in described
    assert "S2: utility 0.375 at attack 0.250" in described
    assert "Clean texts: utility 0.875 at attack 0.625." in described


def test_one_table_has_the_rows_of_all_mechanisms(project):
    page = put_others()
    rows = [row[:2] for row in page.tables["utility-1"][2:]]
    mechanisms = ("madlib", "tem", "diffractor_geometric")
    assert rows == [[name, "S1"] for name in mechanisms]
    html = Path("artifacts/report/index.html").read_text(encoding="utf-8")
    assert all(f'id="tradeoff-1-{name}-title"' in html for name in mechanisms)


def test_no_deviation_of_one_training_and_no_gain_over_an_attack_that_never_worked(project):
    put_scores("none", "none", 0.0, utility=0.875, adaptive=0.0, on_clean=0.875, sd=None)
    report.main()
    html = Path("artifacts/report/index.html").read_text(encoding="utf-8")
    page = Page(html)
    assert page.row("attack-1", "madlib", "S1", "utility F1")[:2] == ["0.875", "0.375"]
    assert not [row for row in page.tables["attack-1"] if row[2] == "relative gain"]
    assert "Relative gain is" not in html


def test_nothing_scored_still_makes_a_page(project):
    for file in Path("artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text())
        del record["datasets"]["alpha"]
        file.write_text(json.dumps(record))
    report.main()
    page = Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
    assert "attack-1" not in page.tables and "glance" not in page.tables and "Utility and attacks" in page.headings
    assert json.loads(Path("artifacts/report/metrics.json").read_text())["evaluation"]["madlib/S1/1.0"] == {"beta": {}}


def test_deniability_of_one_mechanism(page, html):
    assert page.row("deniability", "madlib", "gst", "10") == [
        "60.5", "60.0", "60.5", "61.0", "–", "30.0", "29.5", "30.0", "30.5", "–", "1 / embedding distance",
    ]  # fmt: skip
    assert "gst (S2): 2 of 5 words" in html and "a ring is the" not in html and "refused" not in html
    described = figure_of(html, "n-w-word").find("desc").text
    assert "madlib: 2.5 at ε 1, 60.5 at ε 10." in described


def test_deniability_of_several_mechanisms(project):
    page = put_others()
    html = Path("artifacts/report/index.html").read_text(encoding="utf-8")
    assert page.row("deniability", "tem", "word", "10")[4] == "99.2" and "a ring is the" in html
    assert page.row("deniability", "diffractor_geometric", "word", "1")[9:] == ["90.2", "1 / list position"]
    assert not [row for row in page.tables["deniability"] if row[1] == "gst"]  # no strategy of the grid uses it
    root = figure_of(html, "s-w-word")
    texts = {"".join(one.itertext()).strip() for one in root.iter("text")}
    assert {"madlib", "tem", "diffractor_geometric", "ε of a word (1 / distance of the mechanism, log)"} <= texts
    # Drawn lines, markers and rings: one ring per computed value, of two mechanisms at two epsilons.
    rings = [one for one in root.iter("use") if "fill-opacity: 0" in one.get("style", "")]
    lines = [one for one in root.iter("path") if "stroke-dasharray" in one.get("style", "")]
    assert len(rings) == 4, [one.get("style") for one in root.iter("use")]
    assert lines


def test_units_follow_the_mechanism(project):
    put_others()
    html = Path("artifacts/report/index.html").read_text(encoding="utf-8")
    plain = " ".join(html.split())
    assert "ε is in 1 / embedding distance for madlib and tem; 1 / list position for diffractor_geometric." in plain
    for name, unit in (("tem", "embedding distance"), ("diffractor_geometric", "list position")):
        texts = {"".join(one.itertext()).strip() for one in figure_of(html, f"unchanged-{name}").iter("text")}
        assert f"base ε per word (1 / {unit}, log)" in texts
    assert "For madlib and tem, whose distance is the Euclidean one" in plain  # the bound is not of the lists
    assert "d the Euclidean distance of the embedding" in plain
    assert "d the largest difference of the words&#39; indexes over the lists" in plain
    assert "<li>as tem draws (tem only)</li>" in plain and "<li>as diffractor_geometric draws</li>" in plain


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_a_unit(mechanism):
    listed = "index" in MECHANISMS[mechanism].metric
    assert (epsilon_units.unit(mechanism) == "1 / list position") == listed
    assert ("Mahalanobis" in epsilon_units.unit(mechanism)) == ("Mahalanobis" in MECHANISMS[mechanism].metric)


def test_no_bound_where_no_distance_is_euclidean(project):
    put_others()
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["grid"]["mechanisms"] = ["diffractor_geometric"]
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for room in ("plans", "checks/plans"):
        Path(f"artifacts/{room}/madlib").rename(f"artifacts/{room}/diffractor_geometric")
    report.main()
    page = Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
    assert "bound" not in page.tables and "budgets" in page.tables


def test_an_epsilon_that_was_refused_is_said(project):
    page = put_others(refused="needs more than 417")
    assert page.row("deniability", "tem", "word", "1")[:-1] == ["–"] * 10
    html = Path("artifacts/report/index.html").read_text(encoding="utf-8")
    assert "<li>tem, word, ε 1: needs more than 417</li>" in html


def test_statistics_of_different_words_stop_the_report(project):
    put_others()
    put_deniability("tem", "word", [statistic(1.0, 1.0, 1.0), statistic(10.0, 1.0, 1.0)], words=(1, 4))
    with pytest.raises(CheckFailed, match=r"madlib/word\.json and .*tem/word\.json are of different words"):
        report.main()


def test_mechanisms_stand_side_by_side_without_touching_the_next_epsilon():
    factors = side_by_side(7, [1.0, 1.1, 50.0], 350)
    assert factors == sorted(factors) and factors[3] == pytest.approx(1)
    assert factors[-1] / factors[0] < 1.1
    assert side_by_side(1, [1.0, 2.0], 350) == [1.0] and side_by_side(2, [], 350) == [1.0, 1.0]


def test_coverage_and_corpus(page):
    assert page.row("coverage", "alpha", "gst") == ["2", "8", "6", "2", "75.0%"]
    assert page.row("coverage", "beta", "word") == ["2", "8", "8", "0", "100.0%"]
    assert page.row("corpus", "Documents in the sample") == ["11", "–"]
    assert page.row("corpus", "Words and punctuation marks per sentence") == ["20.50", "–"]
    assert page.row("corpus", "Bigrams kept as collocations") == ["12", "50.0%"]
    assert page.row("corpus", "Trigrams kept as collocations") == ["1", "25.0%"]
    assert page.row("segmentations", "gst") == [
        "1,000", "1.025", "7", "4", "2", "1", "90.0%", "13", "1.500", "3.125",
    ]  # fmt: skip


def test_top_collocations_by_pmi_leave_out_the_rare(page, html):
    assert page.tables["bigrams-by-pmi"][1:] == [["heavy rain", "30", "7.75"], ["new york", "40", "5.25"]]
    assert "bigrams that occur at least 30 times, trigrams that occur at least 9 times" in html
    assert page.tables["bigrams-by-count"][1:4] == [
        ["new york", "40", "5.25"],
        ["heavy rain", "30", "7.75"],
        ["rare9 pair", "2", "15.90"],
    ]
    assert page.tables["trigrams-by-pmi"][1:] == [["new york city", "9", "12.50"]]


def test_neighbours_have_the_form_of_table_7(page):
    # Too few tokens for the ranks asked: the last of each length, stop words passed over.
    assert page.tables["neighbours-gst"][0] == [
        "",
        "sun1 word, 40×",
        "new_york2 words, 90×",
        "new_york_city3 words, 50×",
    ]
    assert page.tables["neighbours-gst"][1] == ["1", "the6.125", "rain1.125", "sun5.125"]
    assert page.tables["neighbours-gst"][5] == ["5", "the_rain6.625", "sun1.625", "city5.625"]
    assert len(page.tables["neighbours-gst"]) == 1 + neighbours.NEIGHBOURS
    assert page.tables["neighbours-word"][0] == ["", "rain1 word, 50×"]
    assert len(page.tables["neighbours-mst"]) == 1 + 4  # five tokens have four neighbours


def test_checks_and_their_data_docs(page):
    assert page.row("checks", "vocab") == ["vocabulary against every data set", "1", "2", "2,000", "✓ all hold"]
    assert page.row("checks", "plans/S2")[1:4] == ["2", "2", "4,000"]
    assert "../data_docs/index.html" in page.links


def test_parameters_and_versions(html, page):
    assert "seed: 77" in html
    assert "memory_limit" not in html  # of this machine: changes no result
    assert page.row("versions", "numpy") == [np.__version__]
    assert "Made by Lexveil 9.8.7." in html


def test_nothing_is_fetched(page, html):
    allowed = ("#", "data:", "../data_docs/")
    assert page.links and all(link.startswith(allowed) for link in page.links)
    assert not re.search(r"https?:|@import|<script[^>]+src|<iframe|<object", html)
    assert set(re.findall(r"url\(([^)]*)\)", html)) == set(re.findall(r"url\((#[\w-]+)\)", html))


def test_no_document_text(made):
    files = sorted((made / "artifacts/report").iterdir())
    assert [file.name for file in files] == ["index.html", "metrics.json", "pmi.csv", "recovery.csv", "runs.csv"]
    assert not any(SECRET in file.read_text(encoding="utf-8") for file in files)


def test_every_figure_is_labelled(html):
    figures = {}
    for text in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        root = ElementTree.fromstring(text)
        title, description = root.find("title"), root.find("desc")
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert len(description.text) > 20
        figures[title.get("id")] = {"".join(one.itertext()).strip() for one in root.iter("text")}
    axis = "base ε per word (1 / embedding distance, log)"
    axis_of_word = "ε of a word (1 / embedding distance, log)"
    labels = {
        "outcomes-title": {"share of the tokens of all texts (%)", "strategy"},
        "answer-1-title": {"named by a reader (share of content words)", "madlib S1", "madlib S2", "clean"},
        "unchanged-madlib-title": {axis, "unchanged (% of tokens with noise)"},
        "utility-1-madlib-title": {
            axis,
            "utility (macro F1, 0 to 1)",
            "clean texts",
            "majority",
            "S2",
        },
        "attack-1-madlib-title": {axis, "adaptive attack (macro F1, 0 to 1)", "clean texts", "majority", "S1"},
        "tradeoff-1-madlib-title": {
            "adaptive attack (macro F1)",
            "utility on rewritten texts (macro F1)",
            "S1",
            "S2",
            "clean",
        },
        "cosine-madlib-title": {axis, "mean cosine (1 = same direction)"},
        **{
            f"recovery-{band}-madlib-title": {axis, "recovered (% of replaced words)", "S2"}
            for band in ("all", "function", "frequent", "middle", "rare")
        },
        "utility-recovery-1-madlib-title": {"recovered (share of replaced words)", "S1", "S2", "clean"},
        "n-w-word-title": {axis_of_word, "N_w (draws of 100)", "madlib"},
        "s-w-word-title": {axis_of_word, "S_w (different words)", "madlib"},
        "n-w-gst-title": {axis_of_word, "N_w (draws of 100)"},
        "s-w-gst-title": {axis_of_word, "S_w (different words)"},
        "pmi-title": {"PMI (bits)", "collocations per 0.5 bits"},
        "lengths-title": {"words in a token", "share of the corpus's tokens (%)"},
        "ranks-title": {"rank of the word (log)", "occurrences in the corpus (log)"},
    }
    assert figures.keys() == labels.keys()
    assert all(labels[name] <= figures[name] for name in labels)
    assert {"1", "10", "S1", "S2"} <= figures["cosine-madlib-title"]


def test_ids_are_unique_and_every_reference_has_one(html):
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    references = re.findall(r'url\(#([\w-]+)\)|href="#([\w-]+)"', html)
    assert references and {a or b for a, b in references} <= set(ids)


def test_metrics_are_numbers_dvc_can_compare(made):
    metrics = json.loads((made / "artifacts/report/metrics.json").read_text())
    assert metrics["corpus"] == {"n_documents": 11, "n_sentences": 50, "n_tokens": 1025, "n_words": 333}
    assert metrics["collocations"] == {"bigrams": 12, "trigrams": 1}
    assert metrics["vocabulary"] == {"word": 6, "gst": 7, "mst": 5}
    assert metrics["coverage"]["alpha"]["mst"] == 0.75
    run = {"share_unchanged": 0.0625, "mean_cosine": 0.25, "unprotected_share": 0.35}
    run |= {"recovered": 7 / 64, "recovered_rare": 0.0}
    assert metrics["runs"]["madlib/S1/1.0"] == run
    scores = {"utility_private": 0.5, "utility_clean": 0.4375, "attack_static": 0.125, "attack_adaptive": 0.25}
    assert metrics["evaluation"]["madlib/S1/1.0"] == {"alpha": scores, "beta": {}}
    assert metrics["evaluation"]["none/none/0.0"]["alpha"]["attack_adaptive"] == 0.625
    assert metrics["runs"]["none/none/0.0"] == {"unprotected_share": 1.0}  # no null: DVC compares numbers


def test_csv_files_for_dvc_plots(made):
    with (made / "artifacts/report/runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["epsilon"]) for row in rows] == [
        ("S1", "1.0"), ("S1", "10.0"), ("S2", "1.0"), ("S2", "10.0"),
    ]  # fmt: skip
    assert (rows[2]["share_unchanged"], rows[2]["mean_cosine"], rows[2]["budget_mean"]) == ("0.125", "0.375", "5.0")
    lines = (made / "artifacts/report/pmi.csv").read_text().splitlines()
    assert lines == [
        "ngrams,pmi_bits,n_collocations",
        "bigrams,5.0,1", "bigrams,7.5,1", "bigrams,15.0,5", "bigrams,15.5,5", "trigrams,12.5,1",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["runs.csv", "pmi.csv"])
def test_plots_of_dvc_yaml_name_columns_and_templates_that_exist(made, name):
    stage = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["report"]
    (plot,) = [one[f"artifacts/report/{name}"] for one in stage["plots"] if f"artifacts/report/{name}" in one]
    header = (made / "artifacts/report" / name).read_text().splitlines()[0].split(",")
    template = json.loads((ROOT / f".dvc/plots/{plot['template']}.json").read_text(encoding="utf-8"))
    named = {plot["x"], plot["y"]} | set(template["data"]["format"]["parse"])
    named |= {field for field in re.findall(r'"field": "([^"]+)"', json.dumps(template)) if not field.startswith("<")}
    assert named - {"rev"} <= set(header)


def test_same_artifacts_give_the_same_bytes(made, project):
    # Neither what another run left in the library's settings nor an old run of another grid may show.
    put_run("madlib", "S1", 99.0, unchanged=0.987, cosine=0.987)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.hashsalt": "other", "svg.fonttype": "path"}):
        report.main()
    for file in sorted((made / "artifacts/report").iterdir()):
        assert file.read_bytes() == (project / "artifacts/report" / file.name).read_bytes(), file.name


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("checks/outputs.json", "check_outputs"),
        ("checks/coverage.json", "check_vocab"),
        ("checks/plans/madlib/S2/10.0.json", "check_plans"),
        ("private/madlib/S2/10.0/record.json", "privatize@madlib-S2-10.0"),
        ("private/none/none/0.0/metrics.json", "baseline"),
        ("plans/madlib/S1/1.0.parquet", "plan_budgets"),
        ("metrics/ngrams.json", "count_ngrams"),
        ("metrics/embeddings/mst.json", "train_embeddings@mst"),
        ("embeddings/gst/counts.npy", "train_embeddings@gst"),
        ("neighborhoods/gst/distances.npy", "build_neighborhoods@gst"),
        ("collocations/trigrams.parquet", "build_collocations"),
        ("evaluation/madlib/S2/1.0.json", "evaluate@madlib-S2-1.0"),
        ("evaluation/none/none/0.0.json", "evaluate_baseline"),
        ("checks/evaluation.json", "check_evaluation"),
        ("deniability/madlib/gst.json", "measure_deniability"),
        ("recovery/madlib/S2/1.0.json", "evaluate@madlib-S2-1.0"),
    ],
)
def test_missing_artifact_is_named_with_its_stage(project, capsys, path, stage):
    (project / "artifacts" / path).unlink()
    with pytest.raises(SystemExit) as stopped:
        stage_main(report.main)
    assert stopped.value.code == MissingArtifact.exit_code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"artifacts/{path}" in said and f"stage {stage})" in said
    assert not (project / "artifacts/report").exists()


def test_check_that_does_not_hold_stops_the_report(project):
    file = project / "artifacts/checks/plans/madlib/S1/1.0.json"
    broken = json.loads(file.read_text())
    broken["expectations"][0] = broken["expectations"][0] | {"unexpected": 4}
    file.write_text(json.dumps(broken))
    with pytest.raises(CheckFailed, match=r"checks/plans/madlib/S1/1\.0\.json: 4 values"):
        report.main()


def test_plans_that_contradict_each_other_stop_the_report(project):
    file = project / "artifacts/plans/madlib/S2/10.0.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(6, "budget", pa.array([41.0, 41.0, 70.0])), file)
    with pytest.raises(
        CheckFailed, match=r"S1 and S2 plan data set alpha at base epsilon 10\.0 with budgets 40 and 41"
    ):
        report.main()


def test_the_page_of_the_replication_reads_the_same_project(project):
    replication([str(project)])
    text = (project / "replication.md").read_text(encoding="utf-8")
    assert text.startswith("# Replication\n") and "Cosine similarity rises with ε for each strategy." in text


def test_one_run_and_no_trigrams_still_make_a_page(project):
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["grid"] = {"mechanisms": ["madlib"], "strategies": ["S2"], "epsilons": [10.0]}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    empty = pq.read_table("artifacts/collocations/trigrams.parquet").slice(0, 0)
    pq.write_table(empty, "artifacts/collocations/trigrams.parquet")
    report.run(load_params(), Path("artifacts/report"))
    page = Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
    assert [row[:3] for row in page.tables["results"][2:]] == [["madlib", "S2", "10"], ["none", "none", "–"]]
    assert page.row("corpus", "Trigrams kept as collocations") == ["0", "0.0%"]
    assert page.tables["trigrams-by-pmi"][1:] == []


@pytest.mark.parametrize("epsilons", [[], [1.0, 10.0]])
def test_runs_at_levels_are_compared_on_the_page(project, epsilons):
    """With runs at base epsilons beside them and without; what is drawn over ε has none of them."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["grid"] |= {"strategies": ["S1"], "epsilons": [*epsilons, "r0.2", "r0.05"]}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for part, epsilon, utility in ((0.05, 2.5, 0.5), (0.2, 7.75, 0.625)):
        level = Level(part, epsilon)
        named = f"madlib/S1/{level}.json"
        calibration = {"mechanism": "madlib", "strategy": "S1", "recovery": part, "band": "content"}
        put(f"plans/{named}", calibration | {"epsilon": epsilon, "achieved": {"epsilon": epsilon, "bands": {}}})
        put_check(f"checks/plans/{named}", f"plans/madlib/S1/{level}", {})
        put_run("madlib", "S1", level, unchanged=0.25, cosine=0.5)
        put_scores("madlib", "S1", level, utility=utility, adaptive=0.25, on_clean=0.4375)
        for room in ("recovery", "evaluation"):
            file = Path(f"artifacts/{room}/{named}")
            record = json.loads(file.read_text()) | {"level": part, "epsilon": epsilon}
            file.write_text(json.dumps(record))
    report.run(load_params(), Path("artifacts/report"))
    page = Page(Path("artifacts/report/index.html").read_text(encoding="utf-8"))
    rows = page.tables["at-levels-1"][2:]
    assert [(row[0], row[1], row[-1]) for row in rows[:2]] == [("madlib S1", "5%", "2.5"), ("madlib S1", "20%", "7.75")]
    # Of 48 replaced content words 3 are named, by context and by the word.
    assert all(row[2].startswith("6.2%") and row[3].startswith("6.2%") for row in rows[:2])
    assert [row[4].split()[0] for row in rows] == ["0.50", "0.62", "0.88", "0.38"]
    named = [row[2] for row in page.tables["results"][2:]]
    assert named == [*(f"{epsilon:g}" for epsilon in epsilons), "5%, ε 2.5", "20%, ε 7.75", "–"]
    with Path("artifacts/report/runs.csv").open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    assert [(run["epsilon"], run["level"]) for run in runs[-2:]] == [("2.5", "0.05"), ("7.75", "0.2")]
    assert set(json.loads(Path("artifacts/report/metrics.json").read_text())["runs"]) >= {"madlib/S1/r0.05"}
    assert ("unchanged-madlib" in Path("artifacts/report/index.html").read_text(encoding="utf-8")) == bool(epsilons)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0.0%"), (0.0001, "<0.1%"), (0.123, "12.3%"), (0.9999, ">99.9%"), (1.0, "100.0%")],
)
def test_a_share_never_reads_as_nothing_or_all_when_it_is_not(value, text):
    assert formatting.share(value) == text


@pytest.mark.parametrize(
    ("log_value", "text"), [(0.0, "×1.00"), (0.9, "×2.46"), (5.0, "×148"), (50.0, "×10²²"), (1e5, "×10⁴³⁴²⁹")]
)
def test_factors_too_large_for_a_float_are_written_as_powers(log_value, text):
    assert formatting.factor(log_value) == text


def test_a_strategy_looks_the_same_whatever_stands_beside_it():
    def drawn(names):
        lines = [Series(name, [1.0, 10.0], [0.25, 0.5]) for name in names]
        svg = over_epsilon("f", "t", "y", lines, unit="u", y_limits=(0, 1))
        return [one.get("style") for one in ElementTree.fromstring(svg).iter("path") if one.get("clip-path") is None]

    both, alone = drawn(["S1", "S3"]), drawn(["S3"])
    assert any("--c3" in style and "dasharray" in style for style in filter(None, both))
    assert [style for style in both if style and "--c3" in style] == [
        style for style in alone if style and "--c3" in style
    ]
    assert not any("--c1" in style or "--c2" in style for style in filter(None, alone))


def test_labels_that_would_touch_are_left_out():
    epsilons = [0.1, 0.5, 1.0, 5.0, 10.0, 10.5, 11.0, 50.0]
    assert spaced(epsilons, 350) == [0.1, 0.5, 1.0, 5.0, 10.0, 50.0]
    assert spaced([3.0], 350) == [3.0]


def test_choice_of_tokens():
    tokens = ["the", "a_b", "x", "y", "1", "of_x", "z", "c_d", "u_v"]
    assert neighbours.choose(tokens, 1, {"the", "of"}, (1, 2)) == [2, 3]
    assert neighbours.choose(tokens, 1, {"the", "of"}, (2, 9)) == [3, 6]
    assert neighbours.choose(tokens, 2, {"the", "of"}, (1, 3)) == [1, 8]
    assert neighbours.choose(tokens, 3, {"the", "of"}, (1, 3)) == []


def test_histogram_shows_empty_bins_as_empty():
    svg = pmi_histogram("h", "t", [Series("bigrams", [1.0, 2.0], [4, 6])], 0.5)
    root = ElementTree.fromstring(svg)
    assert "10 collocations, most of them around 2 bits" in root.find("desc").text
    (line,) = [one.get("d") for one in root.iter("path") if "--c1" in one.get("style", "") and one.get("clip-path")]
    heights = [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", line)]
    assert heights.count(max(heights)) >= 4  # both ends, and the bin between them that holds nothing


def test_svg_takes_colours_from_the_page_and_escapes_text():
    with drawing("x") as figure:
        figure.add_axes((0, 0, 1, 1)).set_title("a < b")
        svg = to_svg(figure, "x", "1 < 2", "d & e")
    assert "a &lt; b" in svg and "1 &lt; 2" in svg and "d &amp; e" in svg
    assert "var(--ink)" in svg and "DejaVu" not in svg and "#1f2328" not in svg


def test_table_as_csv_keeps_raw_values():
    table = Table(
        "t", "c", [Column("a", "A"), Column("b", "B", formatting.share, "G")], [("x, y", 0.12345), ("z", None)]
    )
    assert table.csv == 'a,b\n"x, y",0.12345\nz,\n'
    assert table.groups == [("", 1), ("G", 1)] and table.starts == {1}
    assert [[cell.text for cell in row] for row in table.cells] == [["x, y", "12.3%"], ["z", "–"]]
    assert table.csv_uri.startswith("data:text/csv;charset=utf-8,a%2Cb%0A%22x%2C%20y%22")
