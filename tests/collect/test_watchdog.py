from __future__ import annotations

from tidemark.collect.watchdog import Watchdog


def test_it_fires_over_the_limit_repeats_and_resolves() -> None:
    ages = {("c", "no_broker"): 5.0, ("c", "cannot_publish"): 1.0}
    dog = Watchdog("http://127.0.0.1:1", 30.0, "k", lambda: ages)
    assert dog.check(1_000.0) == []
    ages["c", "no_broker"] = 30.0
    (fired,) = dog.check(1_025.0)
    alert = fired["alerts"][0]
    assert (fired["version"], fired["status"], alert["status"], alert["startsAt"]) == ("4", "firing", "firing", "1970-01-01T00:16:35Z")
    assert alert["labels"] == {
        "alertname": "TidemarkCollectorBlind",
        "kafka_cluster": "c",
        "severity": "critical",
        "collector": "k",
        "reason": "no_broker",
    }
    ages["c", "no_broker"] = 60.0
    assert dog.check(1_055.0) == []
    (again,) = dog.check(1_086.0)
    assert again["alerts"][0] == alert
    ages["c", "no_broker"] = 0.1
    (resolved,) = dog.check(1_090.0)
    assert (resolved["status"], resolved["alerts"][0]["endsAt"]) == ("resolved", "1970-01-01T00:18:10Z")
    assert resolved["alerts"][0]["fingerprint"] == alert["fingerprint"]
    assert dog.check(1_091.0) == []
