"""Pipeline stage that updates code.json, which holds a hash of the library code that each stage
runs; this stage runs in every `dvc repro`.
"""

from __future__ import annotations

from lexveil.io.execution.stage import stage_main
from lexveil.io.execution.stage_code import CODE, refresh_code


def main() -> None:
    """Run this stage of the DVC pipeline: write code.json."""
    print(f"{CODE}: {'the library has changed' if refresh_code() else 'nothing new'}")


if __name__ == "__main__":
    stage_main(main, pandas=False)
