"""Files that come with the program: documentation, dashboards, rules, examples of deployment.

A wheel has them below `tidemark/assets` (pyproject.toml lists them). A checkout has the same paths
below its root.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from tidemark.core.errors import TidemarkError

# Folders below the root, as in pyproject.toml.
FOLDERS: Final = ("docs", "dashboards/grafana", "dashboards/prometheus", "deploy")
# Files beside them, which the documents link to.
FILES: Final = ("CHANGELOG.md", "SECURITY.md")


def asset_root() -> Traversable:
    """The folder that holds FOLDERS. Raises TidemarkError where the program came without them."""
    installed = files("tidemark") / "assets"
    checkout = Path(__file__).parent.parent.parent
    for root in (installed, checkout):
        if (root / "docs").is_dir() and (root / "dashboards").is_dir():
            return root
    raise TidemarkError(
        "the documentation and dashboards are not installed with Tidemark: "
        "install its wheel, or run from a checkout."
    )


def read_asset(path: str) -> str:
    """The text at a path such as `docs/runbooks.md`. Raises TidemarkError."""
    return asset_root().joinpath(*path.split("/")).read_text(encoding="utf-8")


def list_assets() -> Iterator[tuple[str, Traversable]]:
    """(path below the root, file) of each asset, in the order of FILES, FOLDERS and names."""
    root = asset_root()
    for name in FILES:
        yield name, root / name
    for folder in FOLDERS:
        yield from _files_below(folder, root.joinpath(*folder.split("/")))


def _files_below(path: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files_below(inner, entry)
        else:
            yield inner, entry
