"""Build hook that adds to the wheel the files from which `lexveil init` makes a project; an
editable install reads them from the repository.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProjectFiles(BuildHookInterface):
    """Build hook that adds the files and folders that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Choose the files before the build."""
        if version == "standard":
            build_data["force_include"] |= {
                name: f"lexveil/_project/{name}" for name in self.config["project"]
            }
