"""Operating errors. Each message names the thing that is wrong and the cure; programmer errors stay assertions."""


class TidemarkError(Exception):
    """A failure that the operator can mend. The command line prints it as one line and ends with `exit_code`."""

    exit_code = 1


class ConfigError(TidemarkError):
    """The configuration or the command line is wrong (exit 2)."""

    exit_code = 2


class WireError(TidemarkError):
    """A record on a topic or in a file does not fit its schema.

    `field` is the path of the offending field ("$.events[3].partition"), "$" when the whole record is unreadable.
    """

    def __init__(self, message: str, field: str = "$") -> None:
        super().__init__(message)
        self.field = field


class ClusterError(TidemarkError):
    """A Kafka cluster, or Tidemark's own topics on it, cannot be used as configured."""
