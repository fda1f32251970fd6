"""After two minutes down a receiver gets everything, once for each fingerprint and state."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.delivery.outage import DOWN_SECONDS, Outage
from tests.delivery.webhook import KINDS, Kind
from tidemark.settings import Receiver
from tidemark_exporters.notify.address import LONGEST_WAIT_SECONDS
from tidemark_lab.brokers.cluster import LocalCluster

TIMEOUT_SECONDS = Receiver(name="hook").timeout_seconds

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_receivers_that_were_down_for_two_minutes_get_everything_once(outage: Outage) -> None:
    check(outage)


@pytest.mark.soak
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "refuse"])
def test_a_webhook_that_failed_for_two_minutes_gets_everything_once(
    kind: Kind, cluster: LocalCluster, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        outage = Outage(stack, cluster, tmp_path, kind)
        check(outage)
        assert not outage.direct.was_redirected()


def check(outage: Outage) -> None:
    outage.wait()
    figures = outage.figures
    print(figures)
    assert figures["down seconds"] >= DOWN_SECONDS
    # It tried all the time, and one alert has waited for most of it.
    attempt_seconds = TIMEOUT_SECONDS if outage.kind == "hang" else 0.0
    possible = DOWN_SECONDS / (LONGEST_WAIT_SECONDS + attempt_seconds)
    assert figures["webhook: failed attempts"] > possible / 2
    assert figures["webhook: seconds that the oldest waits"] > DOWN_SECONDS - 10
    assert figures["webhook: alerts that wait"] == len(outage.expected()) - 2
    for path, delivered in outage.delivered().items():
        assert sorted(delivered) == outage.expected(), path
        fired_at, resolved_at = (
            delivered.index(("comes and goes", state)) for state in ("firing", "resolved")
        )
        assert fired_at < resolved_at, path
    assert outage.descriptions("changes") == {"A newer description."}


def test_urgent_alerts_come_first(outage: Outage) -> None:
    outage.wait()
    first, second, *others = (each.name for each in outage.direct.first_alerts())
    assert first == second == "KafkaCommittedDataLoss"
    assert "KafkaCommittedDataLoss" not in others
