"""The protocols, oldest first. Two neighbouring modules differ by one KIP.

Two are exceptions: `kip_279_first_record` is `kip_279` before a fix, and Kafka never released
`kip_320_first_try`.
"""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.protocols import (
    kip_101,
    kip_279,
    kip_279_first_record,
    kip_320,
    kip_320_first_try,
    kip_966,
    truncate_to_hw,
)
from tidemark_lab.model.protocols.protocol import Protocol

PROTOCOLS: Final[dict[str, Protocol]] = {
    protocol.name: protocol
    for protocol in (
        truncate_to_hw.PROTOCOL,
        kip_101.PROTOCOL,
        kip_279_first_record.PROTOCOL,
        kip_279.PROTOCOL,
        kip_320_first_try.PROTOCOL,
        kip_320.PROTOCOL,
        kip_966.PROTOCOL,
    )
}
