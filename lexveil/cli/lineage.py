"""`lexveil lineage`: what an artifact was made from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from lexveil.cli.options import Json, option
from lexveil.cli.output import anywhere
from lexveil.errors import RequestError
from lexveil.runtime.project import find_root


def lineage(
    artifact: Annotated[
        str,
        option(
            "a file or folder that a stage makes, or a file inside one; or a file that `lexveil privatize` wrote",
            name="ARTIFACT",
        ),
    ],
    /,
    *,
    verify: Annotated[
        bool,
        option("read and hash it and all of its chain that is here again; exit code 1 if anything is not as recorded"),
    ] = False,
    at: Annotated[str | None, option("as of a git commit, tag or branch; the work tree stays as it is", "REV")] = None,
    json: Json = False,
) -> int:
    """What an artifact was made from: commands, parameters, hashes, commit.

    Prints the chain from an artifact down to the files of the data, as DVC recorded it: commands, parameters,
    hashes, and the runs, commits and libraries that made each. Of a file that `lexveil privatize` wrote, by the
    record beside it. docs/how-to/lineage.md says more.

      lexveil lineage artifacts/private/madlib/S3/10.0
      lexveil lineage letters.out.jsonl --verify
      lexveil lineage artifacts/report/index.html --at v1.2 --json
    """
    # Not resolve(): a link into DVC's cache is not followed.
    asked = Path(os.path.abspath(artifact))  # noqa: PTH100
    root = anywhere()
    from lexveil.lineage import release_lineage, rendering, trace
    from lexveil.lineage import verify as verification

    record = release_lineage.record_beside(asked)
    if root is None and (
        record is None or not release_lineage.is_of_packaged_model(release_lineage.read_record(record))
    ):
        find_root(Path.cwd())  # says what to do
    if record is None and root is not None:
        if not asked.is_relative_to(root):
            raise RequestError(
                f"{artifact} is outside the project {root}, and no record of `lexveil privatize` is beside it"
            )
        asked = asked.relative_to(root)
    if verify:
        checked = verification.verify(asked, at) if record is None else verification.verify_released(asked, record, at)
        print("\n".join(rendering.as_json(checked) if json else verification.as_text(checked)))
        return 0 if checked["holds"] else 1
    chain = trace.lineage(asked, at) if record is None else release_lineage.released(asked, record, at)
    print("\n".join(rendering.as_json(chain) if json else rendering.as_text(chain)))
    return 0
