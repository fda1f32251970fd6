"""Free ports of 127.0.0.1."""

from __future__ import annotations

import random
import socket
from typing import Final

from tidemark.core.errors import TidemarkError

# Below Linux's range for outgoing connections: no client takes the port of a broker that is down.
_PORTS: Final = range(18_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Distinct ports that nothing listens on. Raises TidemarkError when there are too few."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise TidemarkError(
        f"127.0.0.1 has no {count} free ports between {_PORTS.start} and {_PORTS.stop}. "
        "Stop programs that listen there."
    )
