"""Get a second and a third budget for one text, or for one subject, by writing it in another way.

The cap leaves room for one and a half documents of a subject. Who gets two of one subject out has
averaged the noise of two draws, and with more spellings of more.
"""

import json
import unicodedata
from pathlib import Path
from typing import Any

from tests.attacks.attacker import privatize, write_rows
from tests.tasks.changing import change_params

BUDGET = 50.0
# So long that no limit of a token leaves budget unspent.
TEXT = "the government said fire services in new south wales were there at the café " * 40

SPELLINGS: dict[str, list[dict[str, Any]]] = {
    "white space and capitals": [{"text": TEXT}, {"text": f" {TEXT}"}, {"text": TEXT.capitalize()}],
    "Unicode form": [{"text": unicodedata.normalize(form, TEXT)} for form in ("NFC", "NFD")],
    "what nobody sees": [{"text": TEXT}, {"text": f"{TEXT}\u200b"}, {"text": f"\ufeff{TEXT}"}],
    "a subject's white space": [{"id": name, "text": TEXT} for name in ("c7", "c7 ", "c7\u00a0")],
    "a subject's Unicode form": [
        {"id": unicodedata.normalize(form, "Zoë"), "text": TEXT} for form in ("NFC", "NFD")
    ],
    "a number": [{"id": name, "text": TEXT} for name in (7, "7", "7.0", 7.0, "7.00")],
}


def attack(project: Path) -> bool:
    """Return whether any spelling of a subject's name gets more out than the cap allows."""
    change_params(ledger={"cap": 1.5 * BUDGET})
    gained = 0
    for number, (way, rows) in enumerate(SPELLINGS.items()):
        for file, listed in ((f"{number}.jsonl", rows), (f"{number}-again.jsonl", rows[1:])):
            # Each way has subjects of its own, so that what one spends is not missing to another.
            own = [{**row, "text": row["text"].replace("fire", f"{number}")} for row in listed]
            own = [
                {**row, "id": f"{number}{row['id']}"} if way.startswith("a subject") else row
                for row in own
            ]
            source = write_rows(project / file, own)
            out = project / f"out-{file}"
            whom = ["--subject-column", "id"] if "id" in rows[0] else []
            code, err = privatize(source, out, "--document-budget", BUDGET, *whom)
            assert code in (0, 1), err  # 1 where all rows are withheld
            n_out = sum(
                json.loads(line)["text"] is not None for line in out.read_text().splitlines()
            )
            n_due = 1 if listed is rows else 0
            print(f"{way}: {n_out} of {len(listed)} come out, {n_due} may")
            gained += n_out > n_due
    return gained > 0
