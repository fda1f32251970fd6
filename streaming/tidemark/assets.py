"""Files that come with the program: documentation, dashboards, rules, examples of deployment.

A wheel has them below `tidemark/assets` (pyproject.toml lists them). A checkout has the same paths
below its root. The rules as resources of the Prometheus operator are made of Prometheus' rules.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final

from tidemark.core.errors import TidemarkError

# Folders below the root, as in pyproject.toml.
FOLDERS: Final = ("docs", "dashboards/grafana", "dashboards/prometheus", "deploy")
# Files beside them, which the documents link to.
FILES: Final = ("CHANGELOG.md", "SECURITY.md")
RULES: Final = "dashboards/prometheus/"
# Where deploy/kubernetes/kustomization.yaml looks for RULES.
KUBERNETES_RULES: Final = "deploy/kubernetes/rules/"
_RESOURCE: Final = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {name}
spec:
{rules}"""


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


def list_assets() -> Iterator[tuple[str, bytes]]:
    """(path below the root, content) of each asset: FILES, FOLDERS by name, KUBERNETES_RULES."""
    root, rules = asset_root(), []
    for name in FILES:
        yield name, (root / name).read_bytes()
    for folder in FOLDERS:
        for path, file in _files_below(folder, root.joinpath(*folder.split("/"))):
            content = file.read_bytes()
            yield path, content
            if path.startswith(RULES):
                rules.append((path.removeprefix(RULES), content.decode()))
    for name, text in rules:
        resource = _RESOURCE.format(
            name=PurePosixPath(name).stem, rules=textwrap.indent(text, "  ")
        )
        yield f"{KUBERNETES_RULES}{name}", resource.encode()


def _files_below(path: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files_below(inner, entry)
        else:
            yield inner, entry
