"""2.0.0: KIP-279, where a leader still notes its epoch with its first record.

A follower may have records of a later epoch than all that its leader noted. The leader answers that
it does not know this epoch, and the follower truncates to its own high watermark, as before 0.11:
KAFKA-7415, fixed in 2.0.1.
"""

from __future__ import annotations

from typing import Final

from tidemark_lab.model import actions
from tidemark_lab.model.protocols import kip_279
from tidemark_lab.model.truncation import Truncation

TRUNCATION: Final = Truncation(notes_epoch_at_election=False)
_NAME = "BecomeFollowerTruncateKip279"
PROTOCOL = kip_279.PROTOCOL._replace(
    name="kip-279-first-record",
    rule="As kip-279, but a leader notes its epoch with its first record, not at its election.",
    kafka="2.0.0",
    truncation=TRUNCATION,
    actions=tuple(
        actions.become_follower_and_truncate_to(_NAME, TRUNCATION)
        if action.name == _NAME
        else action
        for action in kip_279.PROTOCOL.actions
    ),
)
