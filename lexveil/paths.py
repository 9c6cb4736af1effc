"""Where each artifact lives. Everything is relative to the project's folder, the one with
dvc.yaml.
"""

from __future__ import annotations

import os
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent
# What `lexveil init` copies: in the wheel; without one, the library stands in the project's own
# repository.
TEMPLATE = LIBRARY / "_project" if (LIBRARY / "_project").is_dir() else LIBRARY.parent

# The models that ship, one folder each.
MODELS = LIBRARY / "models"

PARAMS = Path("params.yaml")
CORPUS = Path("data/corpus")
DOCUMENTS = Path("data/documents")
EMBEDDINGS = Path("data/embeddings")

ARTIFACTS = Path("artifacts")
SAMPLE = ARTIFACTS / "corpus/sample.parquet"
TOKENS = ARTIFACTS / "corpus/tokens.parquet"
WORDS = ARTIFACTS / "corpus/words.parquet"
CORPUS_LENGTH = ARTIFACTS / "corpus/length.json"
NGRAMS = ARTIFACTS / "ngrams"
COLLOCATIONS = ARTIFACTS / "collocations"
ATTACKERS = ARTIFACTS / "attackers"
LANGUAGE_MODEL = ARTIFACTS / "language_model"
METRICS = ARTIFACTS / "metrics"
CHECKS = ARTIFACTS / "checks"
DATA_DOCS = ARTIFACTS / "data_docs"
REPORT = ARTIFACTS / "report"
RUNS = ARTIFACTS / "runs"  # figures of each run, for `dvc metrics`
PACKAGED = ARTIFACTS / "model"  # a project's run as a model that travels
AUDITS = Path(".lexveil/audit")  # one JSON file per audit of the weekly flow, of its last time
# what readers are expected to get back, kept so that it is computed once
RECOVERY = Path(".lexveil/recovery")


def user_data() -> Path:
    """The folder of what belongs to this user and to no project: models, ledger; LEXVEIL_HOME names
    another one.
    """
    if own := os.environ.get("LEXVEIL_HOME"):
        return Path(own).absolute()
    from platformdirs import user_data_path

    return user_data_path("lexveil")


def user_cache() -> Path:
    """The folder of what can be made again: in that of LEXVEIL_HOME, where there is one."""
    if own := os.environ.get("LEXVEIL_HOME"):
        return Path(own).absolute() / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("lexveil")


def sql() -> Path:
    """The folder of the queries: of the project, if this is the folder of one, else those of the
    library.
    """
    own = Path.cwd() / "sql"
    return own if own.is_dir() and Path("dvc.yaml").is_file() else TEMPLATE / "sql"


def query(name: str) -> Path:
    """The file of one query, such as corpus/sample; one that a project does not have is the
    library's.
    """
    own = sql() / f"{name}.sql"
    return own if own.is_file() else TEMPLATE / "sql" / f"{name}.sql"


def segmented(segmentation: str) -> Path:
    """One sentence per line, tokens separated by a space."""
    return ARTIFACTS / "segmented" / f"{segmentation}.txt"


def embedding(segmentation: str) -> Path:
    """The embedding trained on one segmentation: words.txt, counts.npy, vectors.npy, meta.json."""
    return ARTIFACTS / "embeddings" / segmentation


def neighborhood(segmentation: str) -> Path:
    """Nearest words of every word of one embedding: neighbors.npy, distances.npy, meta.json."""
    return ARTIFACTS / "neighborhoods" / segmentation


def near_lists(segmentation: str) -> Path:
    """Lists of near words of one embedding's vocabulary: near.npy, distances.npy, meta.json."""
    return neighborhood(segmentation) / "lists"


def word_orders(segmentation: str, name: str) -> Path:
    """One list set (L0, L1, L2) over the words of one segmentation: words.txt, orders.npy,
    meta.json.
    """
    return ARTIFACTS / "word_orders" / segmentation / name


def bigrams(segmentation: str) -> Path:
    """Bigram counts of the tokens of one segmentation's embedding."""
    return ARTIFACTS / "bigrams" / segmentation


def structure(segmentation: str) -> Path:
    """How often one other word changes the structure of a public text, cut in one segmentation."""
    return ARTIFACTS / "structure" / f"{segmentation}.json"


def deniability(mechanism: str) -> Path:
    """Plausible deniability statistics of one mechanism, one JSON file per segmentation."""
    return ARTIFACTS / "deniability" / mechanism


def evaluation(mechanism: str, strategy: str, epsilon: float) -> Path:
    """Utility and empirical privacy of one run."""
    return ARTIFACTS / "evaluation" / mechanism / strategy / f"{epsilon}.json"


def recovery(mechanism: str, strategy: str, epsilon: float) -> Path:
    """What a best-informed reader gets back of one run."""
    return ARTIFACTS / "recovery" / mechanism / strategy / f"{epsilon}.json"


def model(name: str) -> Path:
    """An external word model: words.txt, vectors.npy, counts.npy, meta.json."""
    return EMBEDDINGS / name


def plan(mechanism: str, strategy: str, epsilon: float) -> Path:
    """The budget plan of a run: what every document may spend."""
    return ARTIFACTS / "plans" / mechanism / strategy / f"{epsilon}.parquet"


def planned_epsilon(mechanism: str, strategy: str, epsilon: float) -> Path:
    """The epsilon of a run, as its plan has it: its base epsilon, or what was found for its level
    of recovery.
    """
    return ARTIFACTS / "plans" / mechanism / strategy / f"{epsilon}.json"


def plan_check(mechanism: str, strategy: str, epsilon: float) -> Path:
    """What the expectations said of the plan of a run; privatize depends on it."""
    return CHECKS / "plans" / mechanism / strategy / f"{epsilon}.json"


def private(mechanism: str, strategy: str, epsilon: float) -> Path:
    """One run: documents.parquet, tokens.parquet, record.json."""
    return ARTIFACTS / "private" / mechanism / strategy / f"{epsilon}"
