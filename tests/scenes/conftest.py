from __future__ import annotations

import shutil

import pytest

from tests.delivery.paths import TOOLS, delivery_paths
from tests.scenes.run import Scenes, run_scenes


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    """The one run of the demo's scenes, delivered on both paths where the tools are installed."""
    folder = tmp_path_factory.mktemp("scenes")
    if not all(map(shutil.which, TOOLS)):
        return run_scenes(folder)
    with delivery_paths(tmp_path_factory.mktemp("paths")) as paths:
        return run_scenes(folder, paths)
