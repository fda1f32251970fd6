"""`python -m dashboards` writes the dashboards, the rules and docs/metrics.md.

The chart has a link to each, because it reads no file outside of its folder: helm, wheel and
`tidemark assets export` put the content in its place. `--check` compares instead of writing, and
exits with 1 when a file differs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import (
    brokers,
    fleet,
    health_rules,
    metrics_page,
    overview,
    partition,
    pipeline,
    replication_rules,
    topic,
)

ROOT = Path(__file__).parent.parent
GRAFANA = Path("dashboards", "grafana")
PROMETHEUS = Path("dashboards", "prometheus")
CHART = Path("deploy", "helm", "tidemark")
# The folders of the chart, and what their links lead to.
LINKED = {CHART / "dashboards": GRAFANA, CHART / "rules": PROMETHEUS}
DASHBOARDS = (fleet, overview, topic, partition, brokers, pipeline)


def encode(dashboard: Dashboard) -> str:
    """Classic dashboard JSON, without the key by which the SDK puts links into a menu."""
    document = json.loads(JSONEncoder(sort_keys=True).encode(dashboard.build()))
    return (
        json.dumps(without_placement(document), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    )


def without_placement(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: without_placement(v)
            for k, v in value.items()
            if not (k == "placement" and v == "inControlsMenu")
        }
    return [without_placement(item) for item in value] if isinstance(value, list) else value


def generate() -> dict[Path, str]:
    """The generated files: path below the project's root -> content."""
    files = {}
    for module in DASHBOARDS:
        files[GRAFANA / f"{module.UID}.json"] = encode(module.build())
    files[Path("docs", "metrics.md")] = metrics_page.page()
    for rules in (health_rules.FILE, replication_rules.FILE):
        files[PROMETHEUS / f"{rules.name}.yaml"] = rules.prometheus()
    return files


def links(files: dict[Path, str]) -> dict[Path, str]:
    """The links to them: path below the project's root -> where it leads, from its folder."""
    return {
        folder / path.name: os.path.relpath(path, folder)
        for folder, source in LINKED.items()
        for path in files
        if path.parent == source
    }


def stale(files: dict[Path, str], root: Path = ROOT) -> list[Path]:
    """Files that differ from the generated ones, are missing, or are not generated any more."""
    linked = links(files)
    wanted = files.keys() | linked.keys()
    folders = {path.parent for path in wanted} - {Path("docs")}
    present = {path.relative_to(root) for folder in folders for path in (root / folder).iterdir()}
    present |= {path for path in files if (root / path).exists()}
    differing = {
        path
        for path, text in files.items()
        if path not in present or (root / path).read_text(encoding="utf-8") != text
    }
    differing |= {
        path
        for path, target in linked.items()
        if not (root / path).is_symlink() or str((root / path).readlink()) != target
    }
    return sorted(differing | (present - wanted))


def write(files: dict[Path, str], root: Path = ROOT) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for path, target in links(files).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)


def main() -> int:
    files = generate()
    if sys.argv[1:] == ["--check"]:
        for path in stale(files):
            print(f"{path} differs from what the builders make: run make dashboards")
        return 1 if stale(files) else 0
    if sys.argv[1:]:
        print("usage: python -m dashboards [--check]", file=sys.stderr)
        return 2
    write(files)
    print(*files, *links(files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
