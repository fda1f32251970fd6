"""Every alert has its runbook, every link and verb in the documents is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tidemark.cli import VERBS
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")])
PARTS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "Escalate")


def sections(path: Path) -> dict[str, str]:
    """Heading of the second level -> text below it."""
    found = re.split(r"^## +(.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def own_alerts() -> list[str]:
    """Tidemark's own: those of the health rules, and those that the collector and the exporter name in their source."""
    document = yaml.safe_load((ROOT / "dashboards" / "prometheus" / "tidemark-health.yaml").read_text(encoding="utf-8"))
    rules = {rule["alert"] for group in document["groups"] for rule in group["rules"]}
    sources = [*ROOT.glob("streaming/tidemark/collect/*.py"), *ROOT.glob("exporters/tidemark_exporters/**/*.py")]
    named = {name for path in sources for name in re.findall(r'"(Tidemark[A-Z][A-Za-z]+)"', path.read_text(encoding="utf-8"))}
    return sorted(rules | named)


@pytest.mark.parametrize("alert", [*(alert_name(detector) for detector in DETECTORS), *own_alerts()])
def test_each_alert_has_its_runbook(alert: str) -> None:
    text = sections(ROOT / "docs" / "alerts.md")[alert]
    assert [part for part in PARTS if f"**{part}" not in text] == []


def test_there_is_no_runbook_without_an_alert() -> None:
    assert sections(ROOT / "docs" / "alerts.md").keys() == {*(alert_name(detector) for detector in DETECTORS), *own_alerts()}


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=lambda detector: detector.id)
def test_each_detector_has_its_row(detector: object) -> None:
    name, kind = getattr(detector, "id", ""), getattr(detector, "kind", "")
    alert = alert_name(name)
    assert f"| [{alert}](#{alert.lower()}) | {name} | {kind} | " in (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_that_are_there(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def anchors(path: Path) -> set[str]:
    """Where a link may lead in a document: its headings as GitHub names them, and the anchors that it sets itself."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE)
    named = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    own = re.findall(r'<a id="([^"]+)"></a>', text)
    return {*named, *own}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_into_documents_lead_to_headings_that_are_there(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text(encoding="utf-8"))
    missing = []
    for target, anchor in links:
        document = path.parent / target if target else path
        if "://" not in target and document.suffix == ".md" and anchor not in anchors(document):
            missing.append(f"{target}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_name_verbs_and_make_targets_that_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = "\n".join(
        [
            *re.findall(r"`([^`\n]+)`", text),
            *re.findall(r"^    (.+)$", text, flags=re.MULTILINE),
            *re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL),
        ]
    )
    assert set(re.findall(r"(?<![\w./-])tidemark ([a-z][a-z-]+)", commands)) <= VERBS.keys()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"(?<![\w-])make ([a-z]+)", commands)) <= targets
