"""Puts into the wheel what `lexveil init` makes a project of; an editable install has it in the
repository.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProjectFiles(BuildHookInterface):
    """Adds the files and folders that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Choose them before the build."""
        if version == "standard":
            build_data["force_include"] |= {
                name: f"lexveil/_project/{name}" for name in self.config["project"]
            }
