"""The detector table: one line per detector, and one module per line."""

from importlib import import_module

from tidemark.detect.detector import Detector

# In the order in which alerts are published. A loss comes before the election that it proves to
# be unclean, so both reach on-call in that order.
_MODULES = (
    "committed_data_loss",
    "unclean_election",
    "elr_election",
    "divergence",
    "log_truncation",
    "epoch_bump_storm",
    "offline",
    "under_min_isr",
    "loss_risk",
    "leader_alone",
    "zombie_leader",
    "lineage_anomaly",
    "follower_lag",
    "follower_unreachable",
    "hw_stalled",
    "hw_regression",
    "lso_stuck",
    "reassignment_stuck",
    "isr_change",
    "isr_churn",
    "under_replicated",
    "at_min_isr",
    "stale_broker_view",
    "checkpoint_stale",
    "quorum_unhealthy",
    "broker_down",
    "log_dir_offline",
    "preferred_leader_imbalance",
    "purgatory_growing",
    "collector_conflict",
    "collector_gap",
)

_FOUND: list[Detector] = [import_module(f"tidemark.detect.{name}").DETECTOR for name in _MODULES]
DETECTORS = {detector.id: detector for detector in _FOUND}
