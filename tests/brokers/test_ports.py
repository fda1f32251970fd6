from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tidemark.core.errors import TidemarkError
from tidemark_lab.brokers import ports
from tidemark_lab.brokers.ports import free_ports


def test_free_ports_differ_and_skip_ports_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    found = free_ports(5)
    assert len(set(found)) == 5
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", found[0]))
        taken.listen()
        monkeypatch.setattr(ports, "_PORTS", range(found[0], found[0] + 1))
        with pytest.raises(TidemarkError, match="no 1 free ports"):
            free_ports(1)


def test_ports_are_below_those_of_outgoing_connections() -> None:
    # While a broker is down, the kernel must not give its port to a client.
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not ephemeral.exists():
        pytest.skip("no /proc of Linux")
    assert max(free_ports(20)) < int(ephemeral.read_text(encoding="utf-8").split()[0])
