"""What ZooKeeper knows of the brokers, by its four-letter command `dump`."""

from __future__ import annotations

import re
import socket

from tidemark.core.errors import ClusterError


def registered_brokers(address: tuple[str, int]) -> set[int]:
    """Brokers whose session is open. Raises ClusterError where ZooKeeper does not answer."""
    try:
        with socket.create_connection(address, 2.0) as connection:
            connection.sendall(b"dump")
            data = b"".join(iter(lambda: connection.recv(65_536), b""))
    except OSError as error:
        raise ClusterError(f"ZooKeeper does not answer: {error}.") from None
    return {int(number) for number in re.findall(rb"/brokers/ids/(\d+)", data)}
