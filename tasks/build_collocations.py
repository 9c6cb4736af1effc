"""Keep the n-grams whose words belong together: ngrams -> collocations/{bigrams,trigrams}.parquet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tasks.io import duck, paths
from tasks.io.params import CollocationParams, MachineParams, load_params
from tasks.io.stage import stage_main
from tasks.io.tables import atomic_directory, read_json, require


def build(ngrams: Path, n_tokens: int, out: Path, params: CollocationParams, machine: MachineParams) -> dict[str, int]:
    """Write both tables into folder ``out`` and return their row counts."""
    with duck.session(machine) as con, atomic_directory(out) as folder:
        for name in ("words", "bigrams", "trigrams"):
            duck.view(con, name, ngrams / f"{name}.parquet")
        return {
            name: duck.materialize(
                con, f"collocation_{name}", folder / f"{name}.parquet", n_tokens=n_tokens, **asdict(params)
            )
            for name in ("bigrams", "trigrams")
        }


def main() -> None:
    """Run the stage."""
    params = load_params()
    n_tokens = read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"]
    kept = build(
        require(paths.NGRAMS, "count_ngrams"), n_tokens, paths.COLLOCATIONS, params.collocations, params.machine
    )
    print(f"collocations: {kept['bigrams']:,} bigrams, {kept['trigrams']:,} trigrams")


if __name__ == "__main__":
    stage_main(main)
