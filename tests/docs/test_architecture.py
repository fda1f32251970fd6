"""docs/architecture.md names the packages and modules that exist."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TREES = (
    ROOT / "streaming" / "tidemark",
    ROOT / "exporters" / "tidemark_exporters",
    ROOT / "lab" / "tidemark_lab",
)
MODULES = {
    ".".join(path.relative_to(tree).with_suffix("").parts)
    for tree in TREES
    for path in tree.rglob("*.py")
}
CONFIGURATION = yaml.safe_load((ROOT / "docs" / "reference-config.yaml").read_text("utf-8"))
STEPS = re.findall(r"^\d+\. .*(?:\n   .*)*", PAGE, flags=re.MULTILINE)


def packages() -> list[str]:
    streaming, exporters, lab = TREES
    found = [
        f"{tree.name}.{path.stem}"
        for tree in (streaming, lab)
        for path in tree.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    ]
    return [*(each for each in found if not each.endswith(".__init__")), exporters.name]


def is_module(name: str) -> bool:
    """Whether a name is a module, maybe without its package, maybe with one of its members."""
    return any(
        f".{module}".endswith((f".{name}", f".{name}.__init__", f".{name.rpartition('.')[0]}"))
        for module in MODULES
    )


def is_setting(name: str) -> bool:
    section, _, key = name.rpartition(".")
    sections = [CONFIGURATION.get(section)] if section else CONFIGURATION["detect"].values()
    return any(isinstance(each, dict) and key in each for each in sections)


@pytest.mark.parametrize("package", packages())
def test_every_package_and_every_module_beside_them_has_a_row(package: str) -> None:
    assert f"| `{package}` |" in PAGE


def test_every_package_with_a_row_exists() -> None:
    rows = set(re.findall(r"^\| `(tidemark[\w.]*)` \|", PAGE, flags=re.MULTILINE))
    assert rows <= set(packages())


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[:40])
def test_every_module_of_a_step_exists(step: str) -> None:
    names = re.findall(r"`(?!tidemark\.)([a-z_.]+)`", step)
    assert names
    unknown = [name for name in names if not is_module(name) and not is_setting(name)]
    assert not unknown
