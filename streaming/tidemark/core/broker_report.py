"""What a broker reports of itself when it is asked: its log directories and its configuration.

Events, states and views hold these in the same form. Null is not known.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

MAX_LOG_DIRECTORIES: Final = 64
MAX_PATH: Final = 1024

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Milliseconds = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Path = Annotated[str, Meta(min_length=1, max_length=MAX_PATH)]


class LogDirectory(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One of `log.dirs` (DescribeLogDirs). The bytes are those of the volume that it is on."""

    path: Path
    # A Kafka error: the directory is offline. Null: it is online.
    error: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    # Kafka 3.3 (KIP-827).
    total_bytes: Size | None = None
    usable_bytes: Size | None = None
    # Whether Kafka places no new replica in it (cordoned.log.dirs). Kafka 4.3 (KIP-1066).
    cordoned: bool | None = None


class BrokerConfiguration(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Options of one broker (DescribeConfigs), as it uses them now."""

    replica_lag_time_max_ms: Milliseconds | None = None
    replica_fetch_wait_max_ms: Milliseconds | None = None
    # replica.high.watermark.checkpoint.interval.ms
    high_watermark_checkpoint_interval_ms: Milliseconds | None = None
    # Empty: not set, so consumers read from leaders only (KIP-392).
    replica_selector_class: Annotated[str, Meta(max_length=255)] | None = None
    # The defaults of topics without an option of their own.
    unclean_leader_election: bool | None = None
    min_in_sync_replicas: Annotated[int, Meta(ge=0, lt=2**31)] | None = None
    # "leader" and "follower" -> the throttled rate in bytes/s; empty: none is set.
    replication_throttles: dict[Annotated[str, Meta(max_length=16)], Size] | None = None
    # Whether the cluster uses eligible leader replicas (eligible.leader.replicas.version, KIP-966).
    # Null: the broker does not support them either.
    eligible_leader_replicas: bool | None = None

    @property
    def reads_from_followers(self) -> bool | None:
        """Whether the broker may send consumers to a follower."""
        selector = self.replica_selector_class
        return None if selector is None else selector not in ("", LEADER_SELECTOR)


LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
Directories = Annotated[list[LogDirectory], Meta(max_length=MAX_LOG_DIRECTORIES)]
