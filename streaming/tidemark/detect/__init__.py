"""The detector table: one line a detector. Each is a pure function in a file of its own."""

from tidemark.core.conditions import Detector
from tidemark.detect.broker_down import BROKER_DOWN
from tidemark.detect.collector_conflict import COLLECTOR_CONFLICT
from tidemark.detect.collector_gap import COLLECTOR_GAP
from tidemark.detect.committed_data_loss import COMMITTED_DATA_LOSS
from tidemark.detect.divergence import DIVERGENCE
from tidemark.detect.elr_election import ELR_ELECTION
from tidemark.detect.epoch_bump_storm import EPOCH_BUMP_STORM
from tidemark.detect.follower_lag import FOLLOWER_LAG
from tidemark.detect.follower_unreachable import FOLLOWER_UNREACHABLE
from tidemark.detect.hw_stalled import HW_STALLED
from tidemark.detect.isr_change import ISR_CHANGE
from tidemark.detect.isr_churn import ISR_CHURN
from tidemark.detect.log_truncation import LOG_TRUNCATION
from tidemark.detect.offline import OFFLINE
from tidemark.detect.preferred_leader_imbalance import PREFERRED_LEADER_IMBALANCE
from tidemark.detect.purgatory_growing import PURGATORY_GROWING
from tidemark.detect.quorum_unhealthy import QUORUM_UNHEALTHY
from tidemark.detect.unclean_election import UNCLEAN_ELECTION
from tidemark.detect.under_min_isr import UNDER_MIN_ISR
from tidemark.detect.under_replicated import UNDER_REPLICATED

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
        FOLLOWER_LAG,
        FOLLOWER_UNREACHABLE,
        HW_STALLED,
        ISR_CHANGE,
        ISR_CHURN,
        UNDER_REPLICATED,
        QUORUM_UNHEALTHY,
        BROKER_DOWN,
        PREFERRED_LEADER_IMBALANCE,
        PURGATORY_GROWING,
        COLLECTOR_CONFLICT,
        COLLECTOR_GAP,
    )
}
