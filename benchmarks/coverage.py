"""How many words of public texts a packaged model knows, by the project's own tokenizer.

uv run python -m benchmarks.coverage en FOLDER              every FOLDER/*.parquet with a column text
uv run python -m benchmarks.coverage en FOLDER --only imdb yelp --texts 20000
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow.parquet as pq

from lexveil.artifacts.model_store import find
from lexveil.text.encode import Lexicon
from tasks.check_vocab import count_words

BATCH = 2_000


def main() -> None:
    """Print the shares as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of files without .parquet")
    parser.add_argument("--texts", type=int, default=20_000, help="of each file, evenly spaced")
    options = parser.parse_args()
    model = find(options.model)
    lexicon = Lexicon.build("word", model.space("word").tokens, None)
    shares = {}
    for file in sorted(options.folder.glob("*.parquet")):
        if (options.only and file.stem not in options.only) or "text" not in pq.read_schema(file).names:
            continue
        texts = [text for text in pq.read_table(file, columns=["text"]).column(0).to_pylist() if text]
        texts = texts[:: max(1, len(texts) // options.texts)][: options.texts]
        n_words = n_covered = 0
        for start in range(0, len(texts), BATCH):
            counted = count_words(texts[start : start + BATCH], lexicon)
            n_words += int(counted["n_words"].sum())
            n_covered += int(counted["n_covered"].sum())
        shares[file.stem] = {"texts": len(texts), "words": n_words, "coverage": round(n_covered / max(n_words, 1), 4)}
    made = {"model": f"{model.card.name} {model.card.version}", "files": model.card.files["words.txt"], "of": shares}
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
