"""Operating errors: each message names what is wrong and the cure.

Programmer errors are assertions.
"""

from __future__ import annotations


class TidemarkError(Exception):
    """A failure that the operator can mend: one line on standard error, and `exit_code`."""

    exit_code = 1


class ConfigError(TidemarkError):
    """The configuration or the command line is wrong (exit 2)."""

    exit_code = 2


class WireError(TidemarkError):
    """A record on a topic or in a file does not fit its schema.

    `field` is the path of the field ("$.events[3].partition"), "$" when no part is readable.
    """

    def __init__(self, message: str, field: str = "$") -> None:
        super().__init__(message)
        self.field = field


class ClusterError(TidemarkError):
    """A Kafka cluster, or Tidemark's own topics on it, cannot be used as configured."""


class StateError(TidemarkError):
    """A state in the stream's checkpoint that cannot be read."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            f"the checkpoint has a state that cannot be read ({str(reason)[:200]}). Restore the "
            "whole folder from a copy, or start with a new stream.checkpoint."
        )
