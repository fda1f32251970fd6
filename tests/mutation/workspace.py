"""The work folder of mutmut, build/mutation: a copy of the code and of the tests that judge it.

A copy, because mutmut writes its mutants beside the code that it mutates, and finds modules by
their names only below `src/`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "mutation"

# The modules that decide on state, loss, truncation, divergence and elections.
TARGETS: Final = (
    "evolve.observation",
    "evolve.samples",
    "evolve.loss_reads",
    "evolve.fast_path",
    "evolve.loss_proof",
    "core.leader_epochs",
    "evolve.leadership",
    "evolve.divergences",
    "evolve.elections",
    "evolve.truncation_proof",
    "evolve.recreation",
    "evolve.departures",
    "evolve.membership",
    "evolve.metadata_log",
    "evolve.checkpoints_and_audits",
    "evolve.sparse_state",
    "evolve.activity",
    "evolve.cluster",
    "evolve.broker_answers",
    "detect.committed_data_loss",
    "detect.log_truncation",
    "detect.divergence",
    "detect.unclean_election",
)
# Cheap tests: each of them runs against every mutant that survives the ones before it.
SELECTION: Final = (
    "tests/core/test_leader_epochs.py",
    "tests/evolve/test_*.py",
    "tests/detect/test_*.py",
    "tests/scenarios",
    "tests/cases",
    "tests/reduce/test_group_property.py",
    "tests/reduce/test_stored_state.py",
)


def prepare(targets: list[str], folder: Path = FOLDER) -> None:
    """Makes a new folder, because the tests may have changed since earlier verdicts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    leave = shutil.ignore_patterns("__pycache__", "mutation")
    shutil.copytree(ROOT / "streaming" / "tidemark", folder / "src" / "tidemark", ignore=leave)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=leave)
    # A test of the detectors reads a page.
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=leave)
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
# An assertion states for the type checker what the caller ensures; no input fails it.
do_not_mutate_patterns = ['^\\s*assert ']
pytest_add_cli_args_test_selection = {selection}
pytest_add_cli_args = ["--hypothesis-profile=mutation", "-p", "no:cacheprovider"]
also_copy = ["docs"]
use_git_change_detection = false

[tool.pytest]
addopts = ["--import-mode=importlib"]
"""
