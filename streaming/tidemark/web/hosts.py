"""Names by which a browser may ask for a server that has neither users nor TLS.

A page of a stranger can give its own name the address of this server (DNS rebinding), and then read
all answers. So only names that no stranger can own are answered, and those that are configured.
"""

from __future__ import annotations

import socket
from collections.abc import Set as AbstractSet
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

# Of the machine itself, and of Kubernetes' services: no public name ends so.
_RESERVED: Final = (".localhost", ".svc", ".cluster.local")


def own_names(listen_host: str, external_url: str) -> frozenset[str]:
    """In lower case: the name of this machine, and those of two options."""
    names = (socket.gethostname(), listen_host, urlsplit(external_url).hostname or "")
    return frozenset(map(str.lower, names))


def is_expected(host: str, names: AbstractSet[str]) -> bool:
    """Whether a Host header is absent, an address, a name without a dot, reserved or in `names`."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.strip("[]").rstrip(".").lower()
    if "." not in name and ":" not in name:
        return True
    try:
        ip_address(name)
    except ValueError:
        return name in names or name.endswith(_RESERVED)
    return True
