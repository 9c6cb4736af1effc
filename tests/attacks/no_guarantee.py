"""Tell two words apart with certainty in a release that nothing marks as one without a guarantee.

With `vickrey.exclude_input` a word never comes out as itself, while its nearest word often does.
The observer gets a text of one word many times over, which is one of two; the one that is missing
in the output is the source.
"""

import json
from pathlib import Path

import numpy as np

from lexveil.io.artifacts.embeddings import load_embedding
from tests.attacks.attacker import lexveil, public_files, write_rows

N = 300  # times that the word is repeated
EPSILON = 40.0
PAIRS = 5


def pairs(project: Path) -> list[tuple[str, str]]:
    """Words and the nearest word of each."""
    space = load_embedding("word", project)
    vectors = np.asarray(space.vectors, dtype=np.float64)
    found = []
    for row in [row for row, word in enumerate(space.tokens) if word.isalpha() and len(word) > 5][
        :40
    ]:
        distance = np.linalg.norm(vectors - vectors[row], axis=1)
        distance[row] = np.inf
        nearest = space.tokens[int(distance.argmin())]
        if nearest.isalpha() and len(nearest) > 5:
            found.append((space.tokens[row], nearest))
    return found[:PAIRS]


def attack(project: Path) -> bool:
    """Return whether a release without a guarantee appears under a usual name and without a
    refusal, and tells words apart."""
    file = project / "params.yaml"
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace("exclude_input: false", "exclude_input: true"), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != before, "params.yaml has no exclude_input: false"
    told = unmarked = 0
    how = ["--mechanism", "vickrey", "--strategy", "S1", "--document-budget", N * EPSILON]
    for number, (word, other) in enumerate(pairs(project)):
        folder = project / f"no-guarantee-{number}"
        folder.mkdir()
        source = write_rows(project / "repeated.jsonl", [{"text": " ".join([word] * N)}])
        code, _, err = lexveil("privatize", source, "-o", folder / "out.jsonl", *how)
        outputs = [name for name in public_files(folder) if name.suffix == ".jsonl"]
        if code != 0 or not outputs:
            print(f"refused: {err.strip()[:120]}")
            continue
        unmarked += outputs[0].name == "out.jsonl"
        words = json.loads(outputs[0].read_text())["text"].split()
        told += word not in words and other in words
    print(f"{told} of {PAIRS} pairs told apart, {unmarked} in outputs that look like any other")
    return told > 0 and unmarked > 0
