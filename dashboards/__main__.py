"""`python -m dashboards`: writes dashboards, rules and docs/metrics.md; `--check` only compares (exit 1)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import (
    brokers,
    health_rules,
    metrics_page,
    overview,
    partition,
    pipeline,
    replication_rules,
    topic,
)

ROOT = Path(__file__).parent.parent
BOARDS = (overview, topic, partition, brokers, pipeline)


def encode(board: Dashboard) -> str:
    """Classic dashboard JSON. The SDK puts links and annotations into a menu on new Grafana; that key goes."""
    document = json.loads(JSONEncoder(sort_keys=True).encode(board.build()))
    return (
        json.dumps(_without_placement(document), indent=2, sort_keys=True, ensure_ascii=False)
        + "\n"
    )


def _without_placement(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: _without_placement(v)
            for k, v in value.items()
            if not (k == "placement" and v == "inControlsMenu")
        }
    return [_without_placement(item) for item in value] if isinstance(value, list) else value


def generate() -> dict[Path, str]:
    """Every generated file, by its path below the project's folder, with its content."""
    files = {
        Path("dashboards", "grafana", f"{board.UID}.json"): encode(board.build())
        for board in BOARDS
    }
    files[Path("docs", "metrics.md")] = metrics_page.page()
    for rules in (health_rules.FILE, replication_rules.FILE):
        files[Path("dashboards", "prometheus", f"{rules.name}.yaml")] = rules.prometheus()
        files[Path("deploy", "kubernetes", "rules", f"{rules.name}.yaml")] = rules.kubernetes()
    return files


def stale(files: dict[Path, str], root: Path = ROOT) -> list[Path]:
    """Committed files that differ from the generated ones, miss, or are left over."""
    folders = {path.parent for path in files} - {Path("docs")}
    present = {path.relative_to(root) for folder in folders for path in (root / folder).iterdir()}
    present |= {path for path in files if (root / path).exists()}
    differing = {
        path
        for path, text in files.items()
        if path not in present or (root / path).read_text(encoding="utf-8") != text
    }
    return sorted(differing | (present - files.keys()))


def main() -> int:
    files = generate()
    if sys.argv[1:] == ["--check"]:
        for path in stale(files):
            print(f"{path} is not what the builders make: run make dashboards")
        return 1 if stale(files) else 0
    if sys.argv[1:]:
        print("usage: python -m dashboards [--check]", file=sys.stderr)
        return 2
    for path, text in files.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
