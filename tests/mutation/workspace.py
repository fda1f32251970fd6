"""The folder in which mutmut works: copies of the code and of the tests that judge it, under build/mutation.

A copy, because mutmut writes its mutants beside what it mutates, and because it knows modules by their names only where
they stand below `src/`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "mutation"

# What decides of state, loss, truncation, divergence and elections. Names as in survivors.yaml.
TARGETS: Final = (
    "evolve.observation",
    "evolve.fast_path",
    "evolve.losses",
    "core.leader_epochs",
    "evolve.leadership",
    "evolve.divergences",
    "evolve.elections",
    "evolve.in_sync",
    "evolve.metadata_log",
    "evolve.sparse_state",
    "detect.committed_data_loss",
    "detect.log_truncation",
    "detect.divergence",
    "detect.unclean_election",
)
# Cheap ones: every one of them is run against every mutant that lives. The unit tests and the scenarios kill nearly all.
SELECTION: Final = (
    "tests/core/test_leader_epochs.py",
    "tests/evolve/test_*.py",
    "tests/detect/test_*.py",
    "tests/scenarios",
    "tests/reduce/test_group_property.py",
)


def prepare(targets: list[str], folder: Path = FOLDER) -> None:
    """Makes the folder anew: an earlier verdict may rest on tests that have changed since."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    leave = shutil.ignore_patterns("__pycache__", "mutation")
    shutil.copytree(ROOT / "streaming" / "tidemark", folder / "src" / "tidemark", ignore=leave)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=leave)
    (folder / "pyproject.toml").write_text(configuration(targets), encoding="utf-8")


def configuration(targets: list[str]) -> str:
    """mutmut's and pytest's settings for the folder."""
    selection = sorted(
        str(path.relative_to(ROOT)) for pattern in SELECTION for path in ROOT.glob(pattern)
    )
    return f"""\
[tool.mutmut]
source_paths = ["src"]
only_mutate = {[f"src/tidemark/{name.replace('.', '/')}.py" for name in targets]}
# An assertion tells the type checker what the caller has made sure of; no input reaches it.
do_not_mutate_patterns = ['^\\s*assert ']
pytest_add_cli_args_test_selection = {selection}
pytest_add_cli_args = ["--hypothesis-profile=mutation", "-p", "no:cacheprovider"]
use_git_change_detection = false

[tool.pytest]
addopts = ["--import-mode=importlib"]
"""
