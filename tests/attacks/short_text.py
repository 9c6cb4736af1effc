"""Read texts of one word as they come out: beside long ones they got the whole budget of a long
text for one token."""

import json
from pathlib import Path

from tests.attacks.attacker import privatize, words_of, write_rows

EPSILON = 1.0
N = 30


def attack(project: Path) -> bool:
    """Return whether more than half of the short texts are published verbatim, though few words of
    the long ones are."""
    secrets = [word for word in words_of(project) if word.isalpha() and len(word) > 4][:N]
    long = [" ".join(secrets * 10)] * N
    source = write_rows(project / "short.jsonl", [{"text": text} for text in [*secrets, *long]])
    out = project / "short_out.jsonl"
    code, err = privatize(source, out, "--epsilon", EPSILON)
    assert code == 0, err
    texts = [json.loads(line)["text"] for line in out.read_text(encoding="utf-8").splitlines()]
    verbatim = sum(text == secret for text, secret in zip(texts, secrets, strict=False))
    same = [
        word == secret
        for text in texts[N:]
        for word, secret in zip(text.split(), secrets * 10, strict=False)
    ]
    print(
        f"verbatim: {verbatim} of {N} texts of one word; {sum(same) / len(same):.1%} of the "
        "words of the long ones"
    )
    return verbatim > N / 2 and sum(same) < len(same) / 4
