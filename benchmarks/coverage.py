"""How many words of public texts a packaged model knows, by the project's own tokenizer.

Of all words, numbers, handles and hyphenated ones among them; and of those of letters and apostrophes alone.

uv run python -m benchmarks.coverage en FOLDER              every FOLDER/*.parquet with a column text
uv run python -m benchmarks.coverage en FOLDER --only imdb yelp --texts 20000
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Set
from pathlib import Path

import pyarrow.parquet as pq

from lexveil.artifacts.model_store import find
from lexveil.text.tokenize import is_punctuation, normal_form, token_spans

LETTERS = re.compile("[a-z']+")


def share(words: Counter[str], known: Set[str]) -> float:
    """Share of the occurrences whose word is known."""
    covered = sum(count for word, count in words.items() if word in known)
    return round(covered / max(words.total(), 1), 4)


def main() -> None:
    """Print the shares as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of files without .parquet")
    parser.add_argument("--texts", type=int, default=20_000, help="of each file, evenly spaced")
    options = parser.parse_args()
    model = find(options.model)
    known = {token for token in model.tokens if "_" not in token}
    shares = {}
    for file in sorted(options.folder.glob("*.parquet")):
        if (options.only and file.stem not in options.only) or "text" not in pq.read_schema(file).names:
            continue
        texts = [text for text in pq.read_table(file, columns=["text"]).column(0).to_pylist() if text]
        texts = texts[:: max(1, len(texts) // options.texts)][: options.texts]
        words = Counter(
            normal_form(text[start:end]) for text in texts for spans in token_spans(text) for start, end in spans
        )
        words = Counter({word: count for word, count in words.items() if not is_punctuation(word)})
        letters = Counter({word: count for word, count in words.items() if LETTERS.fullmatch(word)})
        shares[file.stem] = {
            "texts": len(texts),
            "words": words.total(),
            "coverage": share(words, known),
            "coverage_of_letters": share(letters, known),
        }
    made = {"model": f"{model.card.name} {model.card.version}", "files": model.card.files["words.txt"], "of": shares}
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
