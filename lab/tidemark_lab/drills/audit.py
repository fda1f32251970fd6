"""`tidemark audit` of the drill's topic, as an operator runs it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from tidemark.core.errors import ClusterError
from tidemark_lab.drills.stage import TOPIC, Stage

_SECONDS: Final = 120.0
_FOUND: Final = (0, 3)


def audit(stage: Stage) -> None:
    """Compares every offset of all replicas. Raises ClusterError where it compares nothing."""
    servers = ",".join(stage.cluster.bootstrap_servers)
    command = [sys.executable, "-m", "tidemark.cli", "audit", TOPIC, "--whole", "--json"]
    try:
        ran = subprocess.run(
            [*command, "--bootstrap", servers],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"tidemark audit took longer than {_SECONDS:.0f} s.") from None
    if ran.returncode not in _FOUND:
        raise ClusterError(f"tidemark audit ended with {ran.returncode}: {ran.stderr.strip()}")
    stage.differences = int(json.loads(ran.stdout)["differences"])
