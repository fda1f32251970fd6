"""The documentation as a web site: it has every page, no dead link, and nothing of other hosts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packaging.test_packaging import tracked


def test_the_navigation_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ *- (?:\w+: )?([\w./-]+\.md)$", text, re.MULTILINE)
    pages = {path.relative_to(ROOT).as_posix() for path in tracked() if path.suffix == ".md"}
    assert len(listed) == len({*listed})
    assert {*listed} == {page for page in pages if not page.startswith(("deploy/", "."))}


@pytest.mark.soak
def test_the_site_is_built_and_a_dead_link_is_an_error() -> None:
    def build(*command: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TIDEMARK": f"{sys.executable} -m tidemark.cli"}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    built = build(ROOT / "scripts" / "site.sh")
    assert built.returncode == 0, built.stderr
    site = ROOT / "build" / "site"
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert site / "docs" / "guide.html" in pages
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    loaded = r'<(?:script|link|img)[^>]* (?:src|href)="https?://[^"]*"'
    found = {tag for text in pages.values() for tag in re.findall(loaded, text)}
    assert {tag for tag in found if 'rel="canonical"' not in tag} == set()
    page = ROOT / "build" / "site-docs" / "docs" / "api.md"
    kept = page.read_text(encoding="utf-8")
    again = (ROOT / "build" / "site-env" / "bin" / "python", "-m", "mkdocs", "build", "--strict")
    for dead in ("[x](nowhere.md)", "[x](guide.md#nowhere)"):
        page.write_text(f"{kept}\n{dead}\n", encoding="utf-8")
        assert build(*again).returncode != 0, dead
    shutil.rmtree(site)
