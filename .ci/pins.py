"""Pin every package, transitive ones too, to one exact version in pyproject.toml.

    python .ci/pins.py --write    resolve anew with the newest versions that fit, and write the pins
    python .ci/pins.py --check    resolve anew within the pins; fail unless every package is pinned
                                  and every pin used
    python .ci/pins.py --explain  name the pins that the registry no longer serves, according to an
                                  error of uv on standard input

uv.lock itself is not committed: it carries download addresses.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
START = "constraint-dependencies = [\n"
END = "]\n"


def resolve(pyproject: str) -> dict[str, str]:
    """Resolve a pyproject.toml from nothing; return the version of each package, the lowest where
    platforms differ.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_text(pyproject, encoding="utf-8")
        Path(folder, "README.md").touch()
        command = ["uv", "lock", "--quiet", "--project", folder]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit("\n".join((done.stderr, *explained(done.stderr, pins_of(pyproject)))))
        lock = tomllib.loads(Path(folder, "uv.lock").read_text(encoding="utf-8"))
    versions: dict[str, list[str]] = {}
    for package in lock["package"]:
        if "virtual" not in package["source"] and "editable" not in package["source"]:
            versions.setdefault(package["name"], []).append(package["version"])
    return {name: min(found, key=_numbers) for name, found in sorted(versions.items())}


def pins_of(pyproject: str) -> dict[str, str]:
    """Return the pinned version of each package in the text of a pyproject.toml."""
    return dict(
        pin.split("==") for pin in tomllib.loads(pyproject)["tool"]["uv"]["constraint-dependencies"]
    )


def explained(error: str, pins: dict[str, str]) -> list[str]:
    """Return one line for each pin that the registry does not serve according to an error of uv,
    with the remedy; return no line if the error names no pin.
    """
    error = " ".join(error.split())  # uv may break lines at any space
    lost = [
        f"{name} {version} is pinned in pyproject.toml, but the package registry does not serve it"
        for name, version in pins.items()
        if re.search(
            rf"no version of {re.escape(name)}(\[[\w,-]*\])?=={re.escape(version)}(?![\w.])", error
        )
        or re.search(rf"(?<![\w.-]){re.escape(name)} was not found in the package registry", error)
    ]
    return (
        [
            *lost,
            "run `python .ci/pins.py --write`, then the tests: it pins the newest versions "
            "that fit",
        ]
        if lost
        else []
    )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def without_pins(text: str) -> str:
    """Return the text of pyproject.toml with an empty list of pins."""
    before, rest = text.split(START, 1)
    return before + START + rest[rest.index(END) :]


def with_pins(text: str, versions: dict[str, str]) -> str:
    """Return the text of pyproject.toml with these pins."""
    pins = "".join(f'    "{name}=={version}",\n' for name, version in versions.items())
    before, after = without_pins(text).split(START, 1)
    return before + START + pins + after


def main() -> int:
    """Write or check the pins."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    action.add_argument("--explain", action="store_true")
    text = PROJECT.read_text(encoding="utf-8")
    arguments = parser.parse_args()
    if arguments.explain:
        print("\n".join(explained(sys.stdin.read(), pins_of(text))))
        return 0
    if arguments.write:
        # Resolve twice: if platforms differed, the pinned version may need other dependencies.
        pinned = with_pins(text, resolve(without_pins(text)))
        PROJECT.write_text(with_pins(pinned, resolve(pinned)), encoding="utf-8")
        return 0
    resolved = resolve(text)
    pins = pins_of(text)
    wrong = sorted(set(resolved.items()) ^ set(pins.items()))
    for name, version in wrong:
        state = (
            "needed, but not pinned" if resolved.get(name) == version else "pinned, but not needed"
        )
        print(f"{name} {version}: {state}")
    print(f"{len(pins)} pins, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
