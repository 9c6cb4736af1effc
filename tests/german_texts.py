"""German-like texts: sentences from a list of patterns and words, with fixed expressions that
become collocations."""

import numpy as np

PATTERNS = (
    "Der {n} war {a}, aber der {m} kam {t} {p}.",
    "Wir haben {t} mit dem {n} {p} {v}.",
    "Die Kollegin sagte, dass der {n} {a} und der {m} {b} sei!",
    "Am 3. {d} wird der {m} nach Dr. Weber benannt, z. B. {p}.",
    "Warum ist der {n} {p} so {a}?",
    "„Der {m} ist {b}“, sagte sie, „und ich werde ihn {t} {v}.“",
    "Im Übrigen geht's dem {n} bzw. dem {m} {t} {a}.",
)
WORDS = {
    "n": "Kellner Hund Zug Brief Garten Lehrer Arzt Nachbar Vertrag Schrank Koch Fahrer".split(),
    "m": "Bahnhof Tisch Kaffee Wagen Bericht Markt Abend Kuchen Regen Termin "
    "Schlüssel Stuhl".split(),
    "a": "freundlich müde pünktlich laut höflich langsam".split(),
    "b": "günstig schön kaputt teuer neu grün".split(),
    "v": "gesprochen gerechnet verhandelt gewartet gelacht gestritten".split(),
    "p": [
        "in der Vereinigten Republik",
        "bei der Roten Brücke",
        "im Weißen Haus",
        "am Hafen",
        "in Köln",
        "zu Hause",
    ],
    "t": "gestern heute morgens später wieder selten".split(),
    "d": "Mai März August Oktober".split(),
}


def german_texts(n: int, seed: int = 1, sentences: int = 6) -> list[str]:
    """``n`` texts, always the same of a seed."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        chosen = {name: some[int(rng.integers(len(some)))] for name, some in WORDS.items()}
        return PATTERNS[int(rng.integers(len(PATTERNS)))].format(**chosen)

    return [" ".join(sentence() for _ in range(sentences)) for _ in range(n)]
