"""What detectors leave of names, numbers and addresses in made-up tickets, setting by setting.

python -m benchmarks.detectors [--tickets N] [--seed S] [--epsilon E]

Tickets are made by a seeded script, so their spans are known. Of each kind it is counted how many values stand in an
output as they stood in the ticket, and how many of their parts do: words of three letters or more, runs of two digits
or more; what a ticket has elsewhere anyway is not counted. Nothing is charged: all runs are experiments.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lexveil
from benchmarks.table import print_table

KINDS = ("PERSON", "PHONE_NUMBER", "EMAIL_ADDRESS", "CREDIT_CARD", "ADDRESS")
FIRST = "Anna Boris Chloe David Elena Farid Grace Henrik Irene Jorge Katya Liam Maria Nadim Olga Peter".split()
LAST = "Abara Becker Castro Dubois Eklund Fischer Garcia Haddad Ivanova Jensen Kowalski Lindgren Moreau".split()
STREETS = "Maple Birch Station Church Mill Garden Harbour Castle Bridge Orchard".split()
TOWNS = "Norwich Lincoln Durham Exeter Bedford Wexford Truro Ripon".split()
TICKETS = (
    "Hello, this is {PERSON}. My order never arrived at {ADDRESS}. Please call me at {PHONE_NUMBER}.",
    "The card {CREDIT_CARD} was charged twice. Send the refund notice to {EMAIL_ADDRESS}. Thanks, {PERSON}",
    "I moved to {ADDRESS} and want to change my contract. My number is {PHONE_NUMBER}. Regards, {PERSON}",
    "{PERSON} wrote from {EMAIL_ADDRESS} that the app crashes when she opens the second page of the report.",
    "Customer {PERSON} wants the card {CREDIT_CARD} removed and asked us to write to {EMAIL_ADDRESS}.",
)
PART = re.compile(r"[^\W\d_]{3,}|\d{2,}")


@dataclass(frozen=True)
class Ticket:
    """A made-up ticket, and where everything personal in it stands."""

    text: str
    spans: list[dict[str, Any]]

    def values(self, kind: str) -> list[str]:
        """What there is of a kind."""
        return [self.text[span["start"] : span["end"]] for span in self.spans if span["type"] == kind]


def tickets(n: int, seed: int) -> list[Ticket]:
    """Make tickets."""
    rng = np.random.default_rng(seed)

    def one(items: Sequence[str]) -> str:
        return items[int(rng.integers(len(items)))]

    def digits(count: int) -> str:
        return "".join(map(str, rng.integers(0, 10, size=count).tolist()))

    made = []
    for _ in range(n):
        first, last = one(FIRST), one(LAST)
        values = {
            "PERSON": f"{first} {last}",
            "PHONE_NUMBER": f"({one(('212', '415', '617'))}) 555-01{digits(2)}",
            "EMAIL_ADDRESS": f"{first}.{last}{digits(2)}@example.com".lower(),
            "CREDIT_CARD": _card(digits(11)),
            "ADDRESS": f"{int(rng.integers(1, 200))} {one(STREETS)} Street, {one(TOWNS)}",
        }
        text, spans = "", []
        for number, part in enumerate(re.split(r"\{(\w+)\}", one(TICKETS))):
            if number % 2:
                spans.append({"start": len(text), "end": len(text) + len(values[part]), "type": part})
            text += values[part] if number % 2 else part
        made.append(Ticket(text, spans))
    return made


def _card(digits: str) -> str:
    """A number of 16 digits with the check digit of a card."""
    number = f"4111{digits}"
    total = sum(int(digit) if place % 2 else sum(divmod(2 * int(digit), 10)) for place, digit in enumerate(number))
    number += str(-total % 10)
    return " ".join(number[place : place + 4] for place in range(0, 16, 4))


def left(made: Sequence[Ticket], outputs: Sequence[str], kind: str) -> tuple[int, float, float]:
    """How many values there are of a kind, and which share of them and of their parts still stands in the outputs."""
    n = whole = parts = parts_left = 0
    for ticket, output in zip(made, outputs, strict=True):
        written = output.lower()
        elsewhere = ticket.text
        for span in reversed(ticket.spans):
            elsewhere = elsewhere[: span["start"]] + " " + elsewhere[span["end"] :]
        public = set(PART.findall(elsewhere.lower()))
        found = set(PART.findall(written))
        for value in ticket.values(kind):
            n += 1
            whole += "".join(value.lower().split()) in "".join(written.split())
            own = set(PART.findall(value.lower())) - public
            parts += len(own)
            parts_left += len(own & found)
    return n, whole / n, parts_left / parts


def as_operator(made: Sequence[Ticket], epsilon: float, seed: int) -> list[str]:
    """Presidio finds, and Lexveil's operator rewrites what it found; the rest of a ticket stays as it is."""
    from presidio_anonymizer import AnonymizerEngine
    from presidio_anonymizer.entities import OperatorConfig, RecognizerResult

    from lexveil.detectors.presidio import Presidio
    from lexveil.presidio import LexveilExperiment

    engine = AnonymizerEngine()
    engine.add_anonymizer(LexveilExperiment)
    config = OperatorConfig("lexveil-experiment", {"mechanism": "tem", "epsilon": epsilon, "seed": seed})
    outputs = []
    for ticket, spans in zip(made, Presidio().find([ticket.text for ticket in made]), strict=True):
        results = [RecognizerResult(span.type, span.start, span.end, 1.0) for span in spans]
        outputs.append(engine.anonymize(ticket.text, results, {"DEFAULT": config}).text)
    return outputs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tickets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--epsilon", type=float, default=10.0)
    chosen = parser.parse_args()
    made = tickets(chosen.tickets, chosen.seed)
    texts = [ticket.text for ticket in made]
    how: dict[str, Any] = {
        "mechanism": "tem", "strategy": "S3", "epsilon": chosen.epsilon, "average_words": 20, "seed": chosen.seed
    }  # fmt: skip

    def privatized(**more: Any) -> Callable[[], list[str]]:
        return lambda: list(lexveil.privatize(texts, **how, **more).values)

    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names.txt"
        names.write_text("[PERSON]\n" + "\n".join(FIRST + LAST), encoding="utf-8")
        settings: dict[str, Callable[[], list[str]]] = {
            "the tickets": lambda: texts,
            "no detector": privatized(),
            "no detector, oov: keep": privatized(oov="keep"),
            "presidio's patterns": privatized(detector="presidio"),
            "list of names": privatized(protect=names),
            "patterns and list": privatized(detector="presidio", protect=names),
            "column of spans": privatized(spans=[ticket.spans for ticket in made]),
            "as presidio's operator": lambda: as_operator(made, chosen.epsilon, chosen.seed),
        }
        rows: list[dict[str, Any]] = []
        for name, run in settings.items():
            start = time.process_time()
            with contextlib.redirect_stderr(io.StringIO()):
                outputs = run()
            seconds = time.process_time() - start
            shares = {kind: left(made, outputs, kind)[1:] for kind in KINDS}
            cells = {kind: f"{whole:.0%} / {parts:.0%}" for kind, (whole, parts) in shares.items()}
            rows.append({"setting": name, **cells, "cpu": f"{seconds:.1f}"})
    counts = {kind: f"{kind} ({left(made, texts, kind)[0]})" for kind in KINDS}
    print_table({"setting": "setting", **counts, "cpu": "CPU s"}, rows)


if __name__ == "__main__":
    main()
