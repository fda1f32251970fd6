"""LOG_DIR_OFFLINE: a broker cannot use one of its log directories.

See LogDirFailureChannel: after an I/O error the broker closes all replicas in the directory and
serves those in the others. It uses the directory again only after a restart.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import ClusterState, NodeState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector

MAX_NAMED: Final = 5


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker. The last report counts: silence repairs no directory."""
    for broker in sorted(cluster.brokers):
        node = cluster.nodes.get(broker)
        if node is not None and node.offline_log_dirs:
            yield _condition(broker, node, node.offline_log_dirs, context)


def _condition(broker: int, node: NodeState, offline: int, context: ClusterContext) -> Condition:
    directories = node.log_directories or []
    failed = {each.path: each.error for each in directories if each.error is not None}
    named = [f"{path} ({error})" for path, error in failed.items()][:MAX_NAMED]
    which = f": {', '.join(named)}" if named else ""
    if len(failed) > MAX_NAMED:
        which += f" and {len(failed) - MAX_NAMED} more"
    total = f"{len(directories)} " if directories else ""
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} of {context.kafka_cluster} cannot use {offline} of its "
        f"{total}log directories{which}. It serves no replica in there until the directory is "
        "repaired and the broker is restarted.",
        evidence={
            "offline_log_dirs": offline,
            "offline": failed,
            "online": [each.path for each in directories if each.error is None],
            "read_at": node.log_directories_at or None,
        },
        revision=f"{offline} {','.join(sorted(failed))}",
    )


DETECTOR = Detector(
    "LOG_DIR_OFFLINE",
    "state",
    "A broker cannot use one of its log directories.",
    severities=("warning",),
    cluster=evaluate,
)
