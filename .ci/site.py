"""Hooks of mkdocs.yml: navigation by docs/README.md, and links that leave the documentation.

docs/README.md is the only list of pages. Its sections and the links of its tables are the
navigation of the site, and a page that docs/README.md does not list fails the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from pymdownx.slugs import slugify

INDEX = "README.md"
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SECTION = re.compile(r"## (.+)")
ROW = re.compile(r"\| .*\|$")


def on_config(config: dict[str, Any]) -> dict[str, Any]:
    """Set the navigation from the index page, and make anchors as GitHub does."""
    config["nav"] = navigation(Path(config["docs_dir"]))
    config["mdx_configs"]["toc"]["slugify"] = slugify(case="lower")
    return config


def navigation(docs: Path) -> list[Any]:
    """Return the index page, then one entry for each of its sections with the pages in it.

    A link to a folder represents all pages of the folder.
    """
    pages: list[Any] = [{"Start": INDEX}]
    section: list[Any] = []
    for line in (docs / INDEX).read_text(encoding="utf-8").splitlines():
        heading = SECTION.match(line)
        if heading:
            section = []
            pages.append({heading[1]: section})
        elif ROW.match(line):
            section += listed_pages(docs, line)
    return pages


def listed_pages(docs: Path, row: str) -> list[Any]:
    """Return the pages to which a row of a table of the index links, each with its title."""
    pages: list[Any] = []
    for title, target, _ in LINK.findall(row):
        path = docs / target
        if path.is_dir():
            folder = [str(page.relative_to(docs)) for page in sorted(path.glob("*.md"))]
            pages.append({title: folder})
        elif path.suffix == ".md":
            pages.append({title: target})
    return pages


def on_page_markdown(markdown: str, page: Any, config: dict[str, Any], **_: Any) -> str:
    """Replace links to files of the repository that are no part of the site by the names of the
    files.
    """
    folder = posixpath.dirname(page.file.src_uri)

    def rewritten(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        if "://" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("../"):
            return f"{text} (`{path[3:]}`)"
        if (Path(config["docs_dir"]) / path).is_dir():
            first = min((Path(config["docs_dir"]) / path).glob("*.md"))
            return f"[{text}]({posixpath.join(target, first.name)}{anchor or ''})"
        return link[0]

    return LINK.sub(rewritten, markdown)
