"""What ZooKeeper knows of the brokers, by its four-letter command `dump`."""

from __future__ import annotations

import re
import socket


def registered_brokers(address: tuple[str, int]) -> set[int] | None:
    """Brokers whose session is open. None where ZooKeeper does not answer."""
    try:
        with socket.create_connection(address, 2.0) as connection:
            connection.sendall(b"dump")
            data = b"".join(iter(lambda: connection.recv(65_536), b""))
    except OSError:
        return None
    return {int(number) for number in re.findall(rb"/brokers/ids/(\d+)", data)}
