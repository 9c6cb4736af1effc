"""Other settings for a stage."""

import yaml

from lexveil import paths


def change_params(**groups: dict[str, object]) -> None:
    """Change some settings of the current folder's params.yaml, by their groups; a link becomes a
    file."""
    params = yaml.safe_load(paths.PARAMS.read_text(encoding="utf-8"))
    for group, values in groups.items():
        params[group] |= values
    paths.PARAMS.unlink()
    paths.PARAMS.write_text(yaml.safe_dump(params), encoding="utf-8")
