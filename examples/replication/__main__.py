"""Reproduce a paper's tables and figures on public data sets, and show our values beside the
paper's, cell by cell.

    python -m examples.replication PROJECT --paper clmldp --sets FOLDER --corpus FOLDER
    python -m examples.replication PROJECT      # only writes the page of an earlier run

FOLDER of --sets holds data sets such as sst2.parquet, with columns text, text_b, label, attribute
and split (examples.replication.bring makes them). The page is PROJECT/replication.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.replication import preset as presets
from examples.replication.page import page
from lexveil.base.errors import LexveilError, RequestError

PAGE = "replication.md"


def parser_of_arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.replication", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("project", type=Path)
    parser.add_argument("--paper", choices=presets.PAPERS, help="whose tables")
    parser.add_argument(
        "--sets", type=Path, metavar="FOLDER", help="folder of public data sets, *.parquet"
    )
    parser.add_argument("--corpus", type=Path, metavar="PATH", help="texts to learn from")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors of S1: GloVe, …")
    parser.add_argument(
        "--neural",
        type=Path,
        metavar="FOLDER",
        help="MiniLM, and the models in FOLDER/classifier and FOLDER/gpt2",
    )
    parser.add_argument("--texts", type=int, metavar="N", help="number of texts of each set")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[], metavar="EPSILON")
    parser.add_argument("--mechanisms", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--full", action="store_true", help="all texts and all ε of the paper")
    return parser


def prepared(options: argparse.Namespace) -> None:
    """Check all inputs of a preset's run, then make the project and run it.

    Raises:
        RequestError: if an input is missing; then nothing is begun.
    """
    if options.paper is None or options.sets is None:
        raise RequestError(
            "--paper and --sets go together; give both, or neither to write the page only"
        )
    if options.project.exists() and any(options.project.iterdir()):
        raise RequestError(f"{options.project} is not empty; name a new folder")
    if options.texts is not None and options.texts < 1:
        raise RequestError(f"--texts {options.texts}: it must be at least 1")
    preset = presets.load_preset(options.paper)
    sets = presets.files_of_sets(preset, options.sets)
    corpus = presets.files_of_corpus(options.corpus, preset)
    if options.neural is not None:
        presets.check_neural(options.neural)
    if options.vectors is not None and not options.vectors.is_file():
        raise RequestError(f"{options.vectors} does not exist; name a file of word vectors")
    texts = None if options.full else options.texts or preset.texts
    request = presets.ReplicationRequest(
        paper=options.paper,
        sets=[file.stem for file in sets],
        corpus=[file.name for file in corpus],
        texts=texts,
        epsilons=options.epsilons,
        mechanisms=options.mechanisms,
        neural=None if options.neural is None else str(options.neural.resolve()),
        vectors=None if options.vectors is None else str(options.vectors.resolve()),
        full=options.full,
    )
    presets.make_project(options.project, preset, request, sets, corpus)
    presets.run(options.project, preset, request)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the preset, if one is given, and write the page."""
    parser = parser_of_arguments()
    options = parser.parse_args(arguments)
    try:
        if options.paper is not None or options.sets is not None:
            prepared(options)
        text = page(options.project)
    except LexveilError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    out = options.project / PAGE
    out.write_text(text, encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
