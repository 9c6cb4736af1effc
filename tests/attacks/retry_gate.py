"""Draw noise until the outcome suits: what is refused after the noise cost nothing, so only the last draw was paid.

A request refuses outputs that a spreadsheet would compute, after all noise is drawn. It is made until it is let pass;
the ledger must have been charged as often as noise was drawn.
"""

import secrets
from pathlib import Path
from typing import Any
from unittest import mock

from tests.attacks.attacker import privatize, words_of
from tests.attacks.ledger_reset import spent

BUDGET = 10.0


def attack(project: Path) -> bool:
    """Whether noise was drawn more often than it was paid for."""
    word = next(word for word in words_of(project) if word.isalpha())
    source = project / "retry.csv"
    source.write_text(f"who,text\nana,{word} {word}\nana,= {word}\n", encoding="utf-8")
    how = ["--punctuation", "keep", "--subject-column", "who", "--document-budget", BUDGET]
    randbits, drawn = secrets.randbits, 0

    def counted(n_bits: int) -> Any:
        nonlocal noise
        noise = True
        return randbits(n_bits)

    balance = [spent()]
    with mock.patch.object(secrets, "randbits", counted):
        for number, formulas in enumerate(("keep", "refuse", "refuse")):
            noise = False
            out = project / f"retry_{number}.csv"
            code, _ = privatize(source, out, *how, "--formulas", formulas)
            assert (code == 0) == (formulas == "keep")
            drawn += noise
            balance.append(spent())
    paid = (balance[-1] - balance[0]) / (balance[1] - balance[0])
    print(f"noise was drawn {drawn} times for both documents, and paid {paid:.3g} times")
    return drawn > paid * 1.5
