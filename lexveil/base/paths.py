"""Paths of all artifacts of a project, relative to the project folder, which contains dvc.yaml."""

from __future__ import annotations

import os
from pathlib import Path

from lexveil.base.levels import NoiseSetting

LIBRARY = Path(__file__).resolve().parents[1]
# Files that `lexveil init` copies: a folder of the wheel, or the repository itself if the library
# is not installed from a wheel.
TEMPLATE = LIBRARY / "_project" if (LIBRARY / "_project").is_dir() else LIBRARY.parent

# The models that ship, one folder each.
MODELS = LIBRARY / "models"

PARAMS = Path("params.yaml")  # all parameters that results of an experiment depend on
CONFIGURATION = Path("lexveil.toml")  # all other settings: machine, ledger, releases
CORPUS = Path("data/corpus")
DOCUMENTS = Path("data/documents")

ARTIFACTS = Path("artifacts")
SAMPLE = ARTIFACTS / "corpus/sample.parquet"
TOKENS = ARTIFACTS / "corpus/tokens.parquet"
WORDS = ARTIFACTS / "corpus/words.parquet"
CORPUS_LENGTH = ARTIFACTS / "corpus/length.json"
NGRAMS = ARTIFACTS / "ngrams"
LIMITS = ARTIFACTS / "limits.json"  # least recovery of each strategy, by band
COLLOCATIONS = ARTIFACTS / "collocations"
ATTACKERS = ARTIFACTS / "attackers"
LANGUAGE_MODEL = ARTIFACTS / "language_model"
METRICS = ARTIFACTS / "metrics"
CHECKS = ARTIFACTS / "checks"
DATA_DOCS = ARTIFACTS / "data_docs"
REPORT = ARTIFACTS / "report"
PLANS = ARTIFACTS / "plans"
PLAN = "plan.parquet"  # files in the folder of a run's plan
PLANNED = "planned.json"
RUNS = ARTIFACTS / "runs"  # figures of each run, for `dvc metrics`
PACKAGED = ARTIFACTS / "model"  # a project's run, packaged as a model for other machines
SENTENCES = ARTIFACTS / "sentences.parquet"  # sentences of the corpus: candidates for the bank
BANK = ARTIFACTS / "bank"  # chosen sentences with vectors; empty if there are too few
AUDITS = Path(".lexveil/audit")  # one JSON file per audit of the weekly flow: the latest result
# cache of the expected recovery by adversaries
RECOVERY = Path(".lexveil/recovery")


def user_data() -> Path:
    """Return the folder for this user's models and ledger, which belong to no project. The
    environment variable LEXVEIL_HOME overrides the folder.
    """
    if own := os.environ.get("LEXVEIL_HOME"):
        return Path(own).absolute()
    from platformdirs import user_data_path

    return user_data_path("lexveil")


def user_cache() -> Path:
    """Return the folder for this user's cached files, which can be computed again. If LEXVEIL_HOME
    is set, the folder is inside it.
    """
    if own := os.environ.get("LEXVEIL_HOME"):
        return Path(own).absolute() / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("lexveil")


def sql() -> Path:
    """Return the folder of the SQL queries. If the current folder is a project, it is the project's
    own folder, otherwise the folder of the library.
    """
    own = Path.cwd() / "sql"
    return own if own.is_dir() and Path("dvc.yaml").is_file() else TEMPLATE / "sql"


def query(name: str) -> Path:
    """Return the path of an SQL query by its name, such as corpus/sample. If the project has no
    such query, the path is that of the library's file.
    """
    own = sql() / f"{name}.sql"
    return own if own.is_file() else TEMPLATE / "sql" / f"{name}.sql"


def segmented(segmentation: str) -> Path:
    """Path of the segmented corpus: one sentence per line, tokens separated by a space."""
    return ARTIFACTS / "segmented" / f"{segmentation}.txt"


def embedding(segmentation: str) -> Path:
    """Path of the folder with the embedding trained on one segmentation: words.txt, counts.npy,
    vectors.npy, meta.json.
    """
    return ARTIFACTS / "embeddings" / segmentation


def neighborhood(segmentation: str) -> Path:
    """Path of the folder with the nearest words of every word of one embedding: neighbors.npy,
    distances.npy, meta.json.
    """
    return ARTIFACTS / "neighborhoods" / segmentation


def near_lists(segmentation: str) -> Path:
    """Path of the folder with the lists of near words of one embedding's vocabulary: near.npy,
    distances.npy, meta.json.
    """
    return neighborhood(segmentation) / "lists"


def word_orders(segmentation: str, name: str) -> Path:
    """Path of the folder with one list set (L0, L1, L2) over the words of one segmentation:
    words.txt, orders.npy, meta.json.
    """
    return ARTIFACTS / "word_orders" / segmentation / name


def bigrams(segmentation: str) -> Path:
    """Path of the folder with the bigram counts for the tokens of one segmentation's embedding."""
    return ARTIFACTS / "bigrams" / segmentation


def structure(segmentation: str) -> Path:
    """Path of the file with the structure sensitivity of public texts in one segmentation: how
    often replacing one word changes the disclosed structure, such as the number of tokens.
    """
    return ARTIFACTS / "structure" / f"{segmentation}.json"


def deniability(mechanism: str) -> Path:
    """Path of the folder with the plausible deniability statistics of one mechanism, one JSON file
    per segmentation.
    """
    return ARTIFACTS / "deniability" / mechanism


def evaluation(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the file with the utility and empirical privacy of one run of the grid."""
    return ARTIFACTS / "evaluation" / mechanism / strategy / f"{noise}.json"


def recovery(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the file with the shares of words that adversaries recover from the output of one run
    of the grid.
    """
    return ARTIFACTS / "recovery" / mechanism / strategy / f"{noise}.json"


def plan(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the budget plan of one run of the grid, which has the budget of every document. A
    skipped run has no plan.
    """
    return PLANS / mechanism / strategy / str(noise) / PLAN


def planned_epsilon(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the file with the planned epsilon of one run of the grid: the base epsilon, or the
    epsilon calibrated for the run's recovery level. For a skipped run the file contains the reason.
    """
    return PLANS / mechanism / strategy / str(noise) / PLANNED


def plan_check(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the file with the results of the checks on a run's budget plan. The stage privatize
    depends on this file.
    """
    return CHECKS / "plans" / mechanism / strategy / f"{noise}.json"


def private(mechanism: str, strategy: str, noise: NoiseSetting) -> Path:
    """Path of the folder with the output of one run of the grid: documents.parquet, tokens.parquet,
    record.json.
    """
    return ARTIFACTS / "private" / mechanism / strategy / str(noise)
