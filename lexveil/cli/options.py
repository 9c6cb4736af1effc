"""What can be written after `lexveil`: commands, options, their help, and the refusal of what makes no sense."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

STRATEGIES = {"none": "none", "word": "S1", "gst-word-budget": "S2", "gst": "S3", "mst": "S4"} | {
    name: name for name in ("S1", "S2", "S3", "S4")
}


class Parser(argparse.ArgumentParser):
    """A wrong request is one line on stderr and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and end."""
        print(f"{self.prog}: {' '.join(message.split())}; see `{self.prog} --help`", file=sys.stderr)
        raise SystemExit(2)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number greater than 0")
    return value


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2**63 - 1")
    return int(text)


def _workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes (1 to 1024)")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 2**31 - 1")
    return int(text)


def _part(text: str) -> float:
    value = _positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text} is more than all, which is 1")
    return value


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last if dash else "0")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of numbers, such as 0-9")
    return int(first), int(last if dash else first)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (1 to 65535)")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return value


def _positives(text: str) -> list[float]:
    return sorted({_positive(one) for one in text.split(",")})


def _shares(text: str) -> list[float]:
    return sorted({_share(one) for one in text.split(",")})


def _names(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")]


def _strategy(text: str) -> str:
    if text not in STRATEGIES:
        raise argparse.ArgumentTypeError(f"there is no strategy {text!r}; there are none, S1, S2, S3, S4")
    return STRATEGIES[text]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lexveil")
    except PackageNotFoundError:  # run from a folder, not installed
        return "unknown"


class _ShowVersion(argparse.Action):
    """Look the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f"lexveil {_version()}")
        parser.exit()


def make_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="lexveil",
        description="Rewrites text under metric differential privacy, collocation by collocation, and can say for\n"
        "every file it made which data, code and parameters it came from.",
        epilog="Run it inside the project's folder. Exit codes: 0 done, 1 it ran and failed, 2 the request was wrong,\n"
        "130 interrupted.\n"
        "First steps:  lexveil run     then  lexveil report --open",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")

    def command(name: str, short: str, long: str) -> Parser:
        return commands.add_parser(
            name, help=short, description=long, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )

    run = command(
        "run",
        "bring everything up to date: sample, count, train, privatize, check, report",
        "Runs the graph in dvc.yaml as a Prefect flow. Only what changed data, code or parameters make stale is run\n"
        "again; a run that was stopped or killed continues where it was. Makes the embedded default data if data/ is\n"
        "absent.\n\n"
        "  lexveil run                          with params.yaml as it is\n"
        "  lexveil run --params bigger.yaml     checks bigger.yaml, puts it in the place of params.yaml, and runs\n"
        "  PREFECT_API_URL=http://host:4200/api lexveil run     shows the run in that Prefect server",
    )
    run.add_argument(
        "--params", type=Path, metavar="FILE", help="replace params.yaml by FILE (after checking it) and run"
    )
    run.add_argument("--wait", action="store_true", help="if another run is at work here, wait for its end")
    run.add_argument(
        "-k", "--keep-going", action="store_true", help="after a failure go on with what does not depend on it"
    )
    run.add_argument("-v", "--verbose", action="store_true", help="show what the stages print")

    data = command(
        "data",
        "choose the data: the embedded default, or your own",
        "Fills data/ (corpus/: public text to learn from; documents/: texts to privatize), tracked by data.dvc.\n\n"
        "  lexveil data default\n"
        "  lexveil data use --corpus crawl/ --documents letters.csv --text-column body\n"
        "  lexveil data use --corpus web=crawl/ tickets=tickets.jsonl    (sample.weights in params.yaml mixes them)\n"
        "  lexveil data use --corpus hf://allenai/c4/en --shards 0-99    (after `uv sync --extra hf`)\n"
        "  lexveil data status --json",
    )
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    default = actions.add_parser("default", help="the embedded default data", allow_abbrev=False)
    use = actions.add_parser(
        "use", help="your own files: json.gz, jsonl, csv, tsv, parquet or txt, files or folders", allow_abbrev=False
    )
    use.add_argument(
        "--corpus",
        nargs="+",
        metavar="[NAME=]PATH",
        help="file or folder to learn from, or an address that is read through without being fetched\n"
        "(hf://allenai/c4/en, s3://…), or several, each with a name; left as it is if not given",
    )
    amount = use.add_mutually_exclusive_group()
    amount.add_argument(
        "--max-documents",
        type=_count,
        metavar="N",
        help="of an address: keep about so many documents, a little more (default: sample.max_documents)",
    )
    amount.add_argument(
        "--share", type=_part, metavar="S", help="of an address: keep this share of the documents, above 0 up to 1"
    )
    use.add_argument(
        "--shards", type=_range, metavar="A-B", help="of an address: read only these shards, by number from 0"
    )
    use.add_argument(
        "--documents", type=Path, nargs="+", metavar="PATH", help="files or folders to privatize, each file one set"
    )
    use.add_argument(
        "--text-column", default="text", metavar="NAME", help="the column that holds the text (default: text)"
    )
    status = actions.add_parser("status", help="what is in data/ and whether DVC has it", allow_abbrev=False)
    for action in (default, use, status):
        action.add_argument("--json", action="store_true", help="machine-readable output")
    for action in (default, use):
        action.add_argument("--wait", action="store_true", help="if a run is at work here, wait for its end")

    privatize = command(
        "privatize",
        "rewrite a file or a folder of texts with the artifacts that a run made",
        "Reads JSONL, CSV, TSV, text (each also .gz or .zst) or Parquet, rewrites the text columns, and leaves the\n"
        "rest as it is. A record of what was protected, what was not and what was spent goes with the output, and the\n"
        "ledger (`lexveil ledger`) keeps what each subject has spent in all releases. Needs what `lexveil run` makes.\n"
        "`lexveil inspect IN` says beforehand what would happen.\n\n"
        "  lexveil privatize letters.jsonl -o out.jsonl --mechanism madlib --strategy S3 --epsilon 10\n"
        "  lexveil privatize tickets.csv -o out.csv --text-column title --text-column body \\\n"
        "      --subject-column customer --mechanism tem --strategy S3 --document-budget 200\n"
        "  lexveil privatize archive/ -o private/ --mechanism tem --strategy S3 --epsilon 10 --workers 8\n"
        "  cat a.jsonl | lexveil privatize - -o - --mechanism madlib --strategy gst --epsilon 10 > b.jsonl",
    )
    privatize.add_argument("input", metavar="IN", help="file or folder to rewrite; - is standard input")
    privatize.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="file or folder to write, in the form of IN; - is standard output, without record and ledger files",
    )
    _rewriting(privatize, required=True)
    privatize.add_argument(
        "--on-exhausted", choices=("withhold", "refuse"),
        help="rows of subjects whose budget is exhausted: leave them out and list them, or release nothing\n"
        "(default: params.yaml: release.on_exhausted)",
    )  # fmt: skip
    privatize.add_argument(
        "--formulas", choices=("keep", "quote", "refuse"), default="keep",
        help="rewritten CSV or TSV fields that begin with = + - @, which spreadsheets compute: keep and count them\n"
        "(the default), put an apostrophe before them, or release nothing",
    )  # fmt: skip
    privatize.add_argument("--json", action="store_true", help="machine-readable summary")

    inspect = command(
        "inspect",
        "what `lexveil privatize` would do with a file, without doing it",
        "Reads a file or folder and says how many of its words the vocabulary knows, what would leave in clear, how\n"
        "the budget would be spread, how much would change, and how long it would take. Writes and spends nothing.\n\n"
        "  lexveil inspect letters.jsonl\n"
        "  lexveil inspect tickets.csv --text-column body --mechanism tem --strategy S3 --epsilon 5 --show-examples",
    )
    inspect.add_argument("input", metavar="IN", help="file or folder to look at; - is standard input")
    _rewriting(inspect, required=False)
    inspect.add_argument(
        "--show-examples",
        action="store_true",
        help="name the most frequent words that would leave in clear, and unknown ones: they are source text",
    )
    inspect.add_argument("--json", action="store_true", help="machine-readable output")

    report = command(
        "report",
        "where the report of the last run is",
        "Prints the path of the report, one self-contained page.\n\n"
        "  lexveil report --open\n"
        "  lexveil report --json      its figures, as JSON",
    )
    report.add_argument("--json", action="store_true", help="print the report's figures")
    report.add_argument("--open", action="store_true", help="open it in the browser")

    ui = command(
        "ui",
        "Prefect's pages on this machine, with the runs of this project",
        "Starts Prefect's server on 127.0.0.1, reachable from this machine only, and prints its address. Runs made\n"
        "without it show there too. Ctrl-C ends it.\n\n"
        "  lexveil ui --port 4201",
    )
    ui.add_argument("--port", type=_port, default=4200, metavar="N", help="default: 4200")

    serve = command(
        "serve",
        "run build and audit on the schedules of prefect.yaml",
        "Serves the deployments of prefect.yaml until Ctrl-C: their schedules fire, and Prefect's pages can start\n"
        "them, with other parameters too. With PREFECT_API_URL or beside `lexveil ui` it uses that server; else it\n"
        "starts one on 127.0.0.1, reachable from this machine only. docs/operation.md says how to keep it alive.\n\n"
        "  lexveil serve\n"
        "  lexveil serve --port 4201",
    )
    serve.add_argument(
        "--port", type=_port, default=4200, metavar="N", help="of the server, if one is started (default: 4200)"
    )

    _lineage(command)
    _gc(command)
    _release(command)
    _ledger(command)

    brought = command(
        "embeddings",
        "bring in word models made by others: GloVe, word2vec, fastText",
        "Checks a file of word vectors, brings its words to the tokenizer's form, and keeps it in\n"
        "data/embeddings/NAME, which data.dvc tracks. Prints NAME@HASH; that goes into params.yaml:\n"
        "word_orders.models (for 1-Diffractor), embeddings.word_model (for S1).\n\n"
        "  lexveil embeddings add glove glove.6B.100d.txt --max-words 100000\n"
        "  lexveil embeddings list",
    )
    brought_actions = brought.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    add = brought_actions.add_parser(
        "add", help="GloVe text, word2vec text or binary, fastText .vec; gzipped or not", allow_abbrev=False
    )
    add.add_argument("name", metavar="NAME", help="how params.yaml calls it; one that is there is replaced")
    add.add_argument("file", type=Path, metavar="FILE", help="the file of vectors")
    add.add_argument("--max-words", type=int, metavar="N", help="keep the first N usable words (frequent ones first)")
    add.add_argument("--wait", action="store_true", help="if a run is at work here, wait for its end")
    for action in (add, brought_actions.add_parser("list", help="the models that are there", allow_abbrev=False)):
        action.add_argument("--json", action="store_true", help="machine-readable output")

    audit = command(
        "audit",
        "test the privacy that a mechanism claims",
        "Exact where a mechanism's law has a closed form; for the rest lower confidence bounds from samples of the\n"
        "mechanism and of whole texts. Ends with exit code 1 if the claimed epsilon is violated. Needs the artifacts\n"
        "of `lexveil run`.\n\n"
        "  lexveil audit --mechanism madlib --epsilon 10\n"
        "  lexveil audit --mechanism madlib --epsilon 10 --strategy S3 --mode release --out audit.json",
    )
    audit.add_argument("--mechanism", required=True, metavar="M", help="which mechanism")
    audit.add_argument(
        "--epsilon",
        required=True,
        type=_positive,
        metavar="E",
        help="the claim: per token; in texts, base epsilon",
    )
    audit.add_argument("--words", type=int, default=300, metavar="N", help="seeded words to test (default: 300)")
    audit.add_argument(
        "--samples",
        type=int,
        default=20_000,
        metavar="N",
        help="draws per word or text, half tested (default: 20000)",
    )
    audit.add_argument("--strategy", type=_strategy, default="S1", metavar="S", help="S1, S2, S3 or S4 (default: S1)")
    audit.add_argument(
        "--mode", choices=("experiment", "release"), default="experiment",
        help="where the noise comes from: the seed in params.yaml (default), or the operating system",
    )  # fmt: skip
    audit.add_argument(
        "--confidence", type=_positive, default=0.999, metavar="C", help="that no bound is too high (default: 0.999)"
    )
    audit.add_argument("--json", action="store_true", help="machine-readable output")
    audit.add_argument("--out", type=Path, metavar="FILE", help="write the result to FILE as JSON")

    tune = command(
        "tune",
        "choose epsilon and t on labelled words",
        "Measures on a list of labelled words what an adversary gets wrong (inference error) and how often the label\n"
        "changes (utility loss), and chooses the epsilon and, of vickrey, the t with the largest error that keeps the\n"
        "loss (Vickrey, Algorithm 2). The words are public and the noise is seeded: an experiment. Exit code 1 if\n"
        "nothing keeps the loss. Needs an embedding: that of `lexveil run`, or one brought in.\n\n"
        "  lexveil tune --max-loss 0.1 --words opinion.csv -o tuning\n"
        "  lexveil tune --compare madlib,vickrey,mahalanobis --t 0.25,0.5,0.75,1 --words opinion.csv -o figure-2",
    )
    tune.add_argument("--max-loss", type=_share, metavar="C", help="the largest utility loss, a share of 1")
    tuned = tune.add_mutually_exclusive_group()
    tuned.add_argument("--mechanism", default="vickrey", metavar="M", help="which mechanism (default: vickrey)")
    tuned.add_argument(
        "--compare", type=_names, default=[], metavar="M,M", help="several, in one figure; --max-loss can be left out"
    )
    tune.add_argument(
        "--words",
        type=Path,
        metavar="FILE",
        help="csv, tsv, jsonl or parquet with columns word (or text) and label (default: a document set of such words)",
    )
    space = tune.add_mutually_exclusive_group()
    space.add_argument("--space", choices=("word", "gst", "mst"), default="word", help="embedding (default: word)")
    space.add_argument("--space-of", metavar="NAME", help="a model of `lexveil embeddings list` instead")
    tune.add_argument(
        "--epsilons",
        type=_positives,
        default=[],
        metavar="E,E",
        help="to measure (default: 5, each twice the one before, around the first that keeps the loss)",
    )
    tune.add_argument(
        "--t", type=_shares, default=[], metavar="T,T", help="of vickrey (default: 0.05 to 1); 0 is always tried"
    )
    tune.add_argument("--runs", type=_count, default=5, metavar="N", help="what deviations are over (default: 5)")
    tune.add_argument("--draws", type=_count, default=20, metavar="N", help="of each word in a run (default: 20)")
    tune.add_argument("--seed", type=_seed, metavar="N", help="of the noise (default: that of params.yaml)")
    tune.add_argument("--json", action="store_true", help="machine-readable output")
    tune.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="write tuning.json, tuning.html, frontier.csv and two SVGs"
    )

    recommend = command(
        "recommend",
        "which runs of the grid keep a limit of utility or attack",
        "Of the evaluated runs, those that no other beats in both utility and attack (macro F1) and that keep the\n"
        "limits, how sure that is, and which of them cannot be told apart. Ends with exit code 1 if none keeps them.\n"
        "Needs the artifacts of `lexveil run` with documents that have a label and an attribute.\n\n"
        "  lexveil recommend --min-utility 0.8\n"
        "  lexveil recommend --max-attack 0.4 --dataset reviews --setting clean --json",
    )
    recommend.add_argument("--min-utility", type=_share, metavar="U", help="the smallest utility, macro F1")
    recommend.add_argument(
        "--max-attack", type=_share, metavar="A", help="the largest success of the adaptive attacker, macro F1"
    )
    recommend.add_argument("--dataset", metavar="NAME", help="only this data set (default: all that have both scores)")
    recommend.add_argument(
        "--setting", choices=("private", "clean"), default="private",
        help="utility on rewritten texts (default) or on clean ones",
    )  # fmt: skip
    recommend.add_argument("--json", action="store_true", help="machine-readable output")

    collocations = command(
        "collocations",
        "look collocations up, and see how they cut a text",
        "Of a text: every collocation in it with its count and measures, and its sentences cut by word, gst, mst and\n"
        "mst_exact with their total PMI, as the corpus is cut. Or the best collocations, of all or of one word.\n"
        "Needs the artifacts of `lexveil run`.\n\n"
        '  lexveil collocations "New York City is in the United States"\n'
        "  lexveil collocations --top 20 --by count --length 3\n"
        "  lexveil collocations --word york --json",
    )
    asked = collocations.add_mutually_exclusive_group(required=True)
    asked.add_argument("text", nargs="?", metavar="TEXT", help="the text; - is standard input")
    asked.add_argument("--top", type=_count, metavar="N", help="the N best collocations")
    asked.add_argument("--word", metavar="W", help="the collocations that W takes part in, best first")
    collocations.add_argument(
        "--by",
        metavar="MEASURE",
        help="what is best: count, pmi_bits (the default), and as params.yaml asks for them npmi, llr, t_score",
    )
    collocations.add_argument("--length", type=int, choices=(2, 3), help="only pairs, or only triples of words")
    collocations.add_argument("--min-count", type=_count, metavar="N", help="only what the corpus has N times or more")
    collocations.add_argument("--limit", type=_count, metavar="N", help="how many with --word (default: 30)")
    collocations.add_argument("--json", action="store_true", help="machine-readable output")
    return parser


def _lineage(command: Callable[[str, str, str], Parser]) -> None:
    lineage = command(
        "lineage",
        "what an artifact was made from: commands, parameters, hashes, commit",
        "Prints the chain from an artifact down to the files of the data, as DVC recorded it: commands, parameters,\n"
        "hashes, and the runs, commits and libraries that made each. Of a file that `lexveil privatize` wrote, by the\n"
        "record beside it. docs/lineage.md says more.\n\n"
        "  lexveil lineage artifacts/private/madlib/S3/10.0\n"
        "  lexveil lineage letters.out.jsonl --verify\n"
        "  lexveil lineage artifacts/report/index.html --at v1.2 --format mermaid",
    )
    lineage.add_argument(
        "artifact", metavar="ARTIFACT",
        help="a file or folder that a stage makes, or a file inside one; or a file that `lexveil privatize` wrote",
    )  # fmt: skip
    lineage.add_argument(
        "--verify", action="store_true",
        help="read and hash it and all of its chain that is here again; exit code 1 if anything is not as recorded",
    )  # fmt: skip
    lineage.add_argument("--at", metavar="REV", help="as of a git commit, tag or branch; the work tree stays as it is")
    form = lineage.add_mutually_exclusive_group()
    form.add_argument("--format", choices=("text", "json", "mermaid"), default="text", help="default: text")
    form.add_argument("--json", action="store_true", help="the same as --format json")


def _gc(command: Callable[[str, str, str], Parser]) -> None:
    collect = command(
        "gc",
        "free the space of results that nothing refers to any more",
        "Shows which objects of DVC's cache belong neither to the work tree nor to any commit, tag or release, and\n"
        "how much they take; removes them only if told to. A release is a record that `lexveil privatize` wrote in\n"
        "release mode inside the project. Remotes are not touched.\n\n"
        "  lexveil gc\n"
        "  lexveil gc --remove",
    )
    what = collect.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="only show what would go (the default)")
    what.add_argument("--remove", action="store_true", help="remove it")
    collect.add_argument("--wait", action="store_true", help="if a run is at work here, wait for its end")
    collect.add_argument("--json", action="store_true", help="machine-readable output")


def _release(command: Callable[[str, str, str], Parser]) -> None:
    release = command(
        "release",
        "release what is new in an inbox, in files or in a database",
        "Reads the source that params.yaml names (release), releases documents that are new or changed, skips those\n"
        "it knows, takes out those that are withdrawn, and publishes nothing that its checks do not pass. Documents\n"
        "are known again by salted hashes of their ids. docs/release.md says more.\n\n"
        "  lexveil release --dry-run     what would be released, skipped and withdrawn, and what it costs\n"
        "  lexveil release",
    )
    release.add_argument("--dry-run", action="store_true", help="only say what would be done and what it would cost")
    release.add_argument("--wait", action="store_true", help="if a run is at work here, wait for its end")
    release.add_argument("--json", action="store_true", help="machine-readable output")


def _ledger(command: Callable[[str, str, str], Parser]) -> None:
    ledger = command(
        "ledger",
        "what each subject has spent over all releases",
        "The ledger of epsilon: every release is charged to the subjects of its documents, and none gets beyond the\n"
        "cap of params.yaml: release. Its folder is named there. Subjects are salted hashes, found by their keys.\n"
        "docs/ledger.md says what it guarantees, and what to keep copies of.\n\n"
        "  lexveil ledger show --top 10\n"
        "  lexveil ledger show --subject user-1234\n"
        "  lexveil ledger verify --record out.jsonl.record.json\n"
        "  lexveil ledger export balances.parquet",
    )
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    show = actions.add_parser(
        "show",
        help="balances and releases; completes or undoes releases whose process was killed",
        description="Balances, the cap, and the newest releases with their state. First, releases whose process was\n"
        "killed are completed if all was written, else undone; those of living processes are left alone.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    asked = show.add_mutually_exclusive_group()
    asked.add_argument("--subject", metavar="KEY", help="one subject, by its key as the documents have it")
    asked.add_argument("--top", type=_count, metavar="N", help="also the N largest balances")
    verified = actions.add_parser(
        "verify",
        help="compute everything again; exit code 1 if anything does not hold",
        description="Computes the chain of entries, digests, balances, states and caps again and says which entry is\n"
        "wrong. Changes nothing, and works on a copy of the database without the salt.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verified.add_argument(
        "--record",
        type=Path,
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="privacy records whose releases must be in it: finds a ledger that was cut short or replaced since",
    )
    exported = actions.add_parser(
        "export",
        help="what each subject has spent, as CSV or Parquet, with hashed keys",
        allow_abbrev=False,
    )
    exported.add_argument("output", metavar="OUT", help="a file.csv or file.parquet; - is CSV on standard output")
    for action in (show, verified):
        action.add_argument("--json", action="store_true", help="machine-readable output")


def _rewriting(command: Parser, required: bool) -> None:
    """Add the options that say how texts are rewritten."""
    default = "" if required else " (default: as in the grid of params.yaml)"
    command.add_argument(
        "--mechanism",
        required=required,
        metavar="M",
        help="none, madlib, mahalanobis, vickrey, tem, truncated_gumbel, diffractor_geometric, diffractor_tem"
        + default,
    )
    command.add_argument(
        "--strategy", required=required, type=_strategy, metavar="S",
        help="none; S1 (word): words; S2 (gst-word-budget): collocations on the budget of words; "
        "S3 (gst): collocations, greedy; S4 (mst): collocations by score" + default,
    )  # fmt: skip
    budget = command.add_mutually_exclusive_group()
    budget.add_argument(
        "--epsilon",
        type=_positive,
        metavar="E",
        help="base epsilon per word; a row's budget is E times the mean number of words" + default,
    )
    budget.add_argument("--document-budget", type=_positive, metavar="B", help="the budget of each row, directly")
    command.add_argument(
        "--text-column",
        action="append",
        metavar="NAME",
        help="a column to rewrite (default: text); can be given several times: the texts of a row share its budget",
    )
    command.add_argument(
        "--subject-column",
        metavar="NAME",
        help="the column that says whom a row is about: whose budget the ledger keeps over all releases, up to\n"
        "release.cap of params.yaml (default: each text is a subject of its own, known again by its content)",
    )
    command.add_argument(
        "--mode", choices=("release", "experiment"),
        help="release (the default): noise from the operating system; experiment: seeded, repeatable, not private",
    )  # fmt: skip
    command.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="the seed of an experiment (default: params.yaml); implies --mode experiment",
    )
    command.add_argument(
        "--consistent",
        choices=("document",),
        help="replace equal words of a row alike, paying once; shows which are equal, and the guarantee says so",
    )
    command.add_argument(
        "--keep-layout", action="store_true", help="copy the writer's spacing and capitals; recorded as unprotected"
    )
    policies = ("paper", "perturb", "keep", "drop", "sample")
    command.add_argument("--stopwords", choices=policies, help="what happens to stop words (default: params.yaml)")
    command.add_argument(
        "--punctuation", choices=policies[1:], help="what happens to punctuation (default: params.yaml)"
    )
    command.add_argument("--oov", choices=policies[2:], help="what happens to unknown words (default: params.yaml)")
    command.add_argument(
        "--format", metavar="F", help="how standard input is written: jsonl (the default), csv, tsv, txt, csv.gz, …"
    )
    command.add_argument(
        "--workers",
        type=_workers,
        metavar="N",
        help="processes that rewrite, one core each; changes no result (default: 1 if there is little to do, else "
        "params.yaml: machine.workers)",
    )
