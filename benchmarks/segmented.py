"""What the benchmarks of embeddings learn from: a corpus cut by the project's own stages, in a scratch folder."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from lexveil import paths
from lexveil.data.default import write_default_corpus

ROOT = Path(__file__).parents[1]


@contextlib.contextmanager
def segmented_corpus(corpus: Path | None, segmentation: str, max_documents: int) -> Iterator[Path]:
    """Give the file that train_embeddings would read, made of at most ``max_documents`` documents.

    Args:
        corpus: a folder of shards in C4's form; None for the embedded default.
    """
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["sample"]["max_documents"] = max_documents
    shards = corpus.resolve() if corpus else None
    scratch = Path(tempfile.mkdtemp(prefix="lexveil-benchmark-"))
    argv = sys.argv
    try:
        with contextlib.chdir(scratch):
            paths.PARAMS.write_text(yaml.safe_dump(params), encoding="utf-8")
            if shards:
                paths.CORPUS.parent.mkdir()
                paths.CORPUS.symlink_to(shards, target_is_directory=True)
            else:
                write_default_corpus(paths.CORPUS)
            with contextlib.redirect_stdout(sys.stderr):
                for stage in ("sample_corpus", "count_ngrams", "build_collocations", "segment_corpus"):
                    sys.argv = [stage, segmentation] if stage == "segment_corpus" else [stage]
                    importlib.import_module(f"tasks.{stage}").main()
        yield scratch / paths.segmented(segmentation)
    finally:
        sys.argv = argv
        shutil.rmtree(scratch, ignore_errors=True)
