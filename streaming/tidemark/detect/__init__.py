"""The detector table: one line a detector. Each is a pure function in a file of its own."""

from tidemark.detect.at_min_isr import AT_MIN_ISR
from tidemark.detect.broker_down import BROKER_DOWN
from tidemark.detect.checkpoint_stale import CHECKPOINT_STALE
from tidemark.detect.collector_conflict import COLLECTOR_CONFLICT
from tidemark.detect.collector_gap import COLLECTOR_GAP
from tidemark.detect.committed_data_loss import COMMITTED_DATA_LOSS
from tidemark.detect.detector import Detector
from tidemark.detect.divergence import DIVERGENCE
from tidemark.detect.elr_election import ELR_ELECTION
from tidemark.detect.epoch_bump_storm import EPOCH_BUMP_STORM
from tidemark.detect.follower_lag import FOLLOWER_LAG
from tidemark.detect.follower_unreachable import FOLLOWER_UNREACHABLE
from tidemark.detect.hw_regression import HW_REGRESSION
from tidemark.detect.hw_stalled import HW_STALLED
from tidemark.detect.isr_change import ISR_CHANGE
from tidemark.detect.isr_churn import ISR_CHURN
from tidemark.detect.leader_alone import LEADER_ALONE
from tidemark.detect.lineage_anomaly import LINEAGE_ANOMALY
from tidemark.detect.log_truncation import LOG_TRUNCATION
from tidemark.detect.loss_risk import LOSS_RISK
from tidemark.detect.lso_stuck import LSO_STUCK
from tidemark.detect.offline import OFFLINE
from tidemark.detect.preferred_leader_imbalance import PREFERRED_LEADER_IMBALANCE
from tidemark.detect.purgatory_growing import PURGATORY_GROWING
from tidemark.detect.quorum_unhealthy import QUORUM_UNHEALTHY
from tidemark.detect.reassignment_stuck import REASSIGNMENT_STUCK
from tidemark.detect.stale_broker_view import STALE_BROKER_VIEW
from tidemark.detect.unclean_election import UNCLEAN_ELECTION
from tidemark.detect.under_min_isr import UNDER_MIN_ISR
from tidemark.detect.under_replicated import UNDER_REPLICATED
from tidemark.detect.zombie_leader import ZOMBIE_LEADER

# A loss comes before the election it convicts, so that both reach on-call in that order.
DETECTORS: dict[str, Detector] = {
    detector.id: detector
    for detector in (
        COMMITTED_DATA_LOSS,
        UNCLEAN_ELECTION,
        ELR_ELECTION,
        DIVERGENCE,
        LOG_TRUNCATION,
        EPOCH_BUMP_STORM,
        OFFLINE,
        UNDER_MIN_ISR,
        LOSS_RISK,
        LEADER_ALONE,
        ZOMBIE_LEADER,
        LINEAGE_ANOMALY,
        FOLLOWER_LAG,
        FOLLOWER_UNREACHABLE,
        HW_STALLED,
        HW_REGRESSION,
        LSO_STUCK,
        REASSIGNMENT_STUCK,
        ISR_CHANGE,
        ISR_CHURN,
        UNDER_REPLICATED,
        AT_MIN_ISR,
        STALE_BROKER_VIEW,
        CHECKPOINT_STALE,
        QUORUM_UNHEALTHY,
        BROKER_DOWN,
        PREFERRED_LEADER_IMBALANCE,
        PURGATORY_GROWING,
        COLLECTOR_CONFLICT,
        COLLECTOR_GAP,
    )
}
