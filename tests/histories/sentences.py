"""Every sentence of the detectors that assert or reassure, with its check against the truth.

One table. A sentence of such a detector that no line matches is a failure: new wording needs a
line. A check returns whether the sentence is true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.histories import statements as s
from tests.histories.case import Case

Check = Callable[[Case, re.Match[str]], bool]


def _anything(case: Case, match: re.Match[str]) -> bool:
    """A sentence that claims nothing about the past, or that its evidence is judged by."""
    return True


# Alert -> (label, pattern, check). The first pattern that matches a sentence decides.
TABLE: Final[dict[str, list[tuple[str, str, Check]]]] = {
    "KafkaCommittedDataLoss": [
        ("claim", r"\d+ committed records? of .* (?:is|are) lost: ", _anything),
        ("exposed", r"Another \d+ records? in .* may have been acknowledged", _anything),
        # What to do, and who is known to have had them, by the last answers.
        ("held", r"Broker \d+ (?:had|leads and has|is back and still had) the lost", _anything),
        ("others held", r"Brokers? [\d, broke]+ had them too: do the same there", _anything),
        ("cut", r"Broker \d+ came back and cut the lost records of", _anything),
        ("not known", r"Broker \d+ led before, and it is unknown whether it has", _anything),
        ("none known", r"No replica is known to hold the lost records of", _anything),
        ("act", r"(?:Before it starts again, copy|Copy its log|Copy the log|Send them)", _anything),
        ("proof", r"Two reads of the log of leader \d+ prove it", _anything),
    ],
    "KafkaUncleanElection": [
        ("keep", r"Keep the disk of broker \d+, which led \S+ before: copy its log", _anything),
        ("sets", r"In sync before: .*; eligible: ", _anything),
        ("unclean", r"(?:Suspected u|U)nclean election: broker (\d+) leads", s.was_elected),
        ("one of two", r"Unclean or last known leader election: broker", s.none_eligible),
        ("last known", r"Last known leader election: broker (\d+)", s.last_known_leader),
        ("lacks", r"Committed records that it lacks are lost", _anything),
        ("gap", r"Not every election in between was seen", _anything),
        ("no epochs", r"The metadata has no leader epochs \(Kafka before 2.1\), so", _anything),
        ("unread", r"No replica was in sync, and which ones", s.eligible_or_last_known),
        ("none left", r"No replica was in sync or eligible", s.none_eligible),
        ("flushed", r"It lost at most what it had not flushed when it stopped", s.lost_its_own),
        ("struck off", r"Either the replicas that were eligible were struck off", s.none_eligible),
        ("or unclean", r"Or the election was unclean", _anything),
        ("disk", r"Records that were not on its disk when it stopped are lost", _anything),
        ("was", r"It was (?:suspected at first|the last known leader)", _anything),
        (
            "proven",
            r"Committed records (?:of the epochs|from) before it are proven to be lost",
            s.lost_before,
        ),
        ("recovering", r"The metadata log marks it(?:s leader)? as recovering", s.recovering),
        ("diverged", r"Its log has other records where committed ones were", s.diverged),
    ],
    "KafkaElrElection": [
        ("leads", r"Broker (\d+) leads \S+ since epoch \d+", s.was_elected),
        ("sets", r"The in-sync set was .* and the eligible leader replicas were", _anything),
        ("has all", r"Its log has everything that was seen", s.elected_holds_all),
        ("either", r"Either it was still eligible, or it had st", s.eligible_or_last_known),
        ("by rule", r"Kafka elects it as one that has every committed record", _anything),
        ("in sync", r"In sync now: ", _anything),
    ],
    "KafkaLogTruncation": [
        (
            "leader has them",
            r"Broker (\d+) .* below (\d+), which was committed \(leader (\d+) has them\)",
            s.cut_committed_and_kept,
        ),
        ("was committed", r"Broker (\d+) .* below (\d+), which was committed", s.cut_committed),
        ("unknown", r"Broker (\d+) .* and it is unknown what of it was committed", s.was_cut),
        ("none committed", r"No committed record is among them", s.cut_none_committed),
        ("acks=1", r"Producers with acks=1 may have an acknowledgement", _anything),
        ("had no record", r"Broker (\d+) .*; it had no record", s.was_empty),
        ("above", r"Broker (\d+) .* above the high watermark (\d+) that was read", s.was_cut),
        ("in between", r"Records that were committed in between may be among them", _anything),
        ("which ones", r"(\d+) was committed; it is unknown whether", s.high_watermark_was),
        ("last copy", r"Broker (\d+) .* no replica holds the last of them any more", s.was_cut),
        ("no other", r"Broker (\d+) .* no other replica is known to hold them", s.was_cut),
        ("save", r"Copy the log of \S+ on every broker before anything else is", _anything),
        ("cut", r"Broker (\d+) (?:cut|started its log).*[\d)]\.$", s.was_cut),
    ],
    "KafkaHwRegression": [
        ("never lowers", r"A leader never lowers it: the topic was created again", _anything),
        (
            "was committed",
            r"Leader \d+ reports high watermark \d+ of \S+; (\d+) was committed before",
            s.high_watermark_was,
        ),
        ("none missing", r"No record below (\d+) is missing in its log", s.leader_lacks_nothing),
        ("reaches", r"Its log reaches \d+", _anything),
        ("not proven", r"Its log ends at \S+; it is not proven yet", _anything),
        ("waits", r"Consumers wait at \d+", _anything),
        ("same epoch", r"Leader \d+ of epoch \S+ reports high watermark", _anything),
        ("violated", r"Within one leadership it never goes back", s.never),
        ("restarted", r"The broker restarted in between", s.restarted),
    ],
    "KafkaLossRisk": [
        (
            "behind",
            r"Broker (\d+) counts as in sync in \S+, but its log ends at (\d+), below (\d+)",
            s.behind_committed,
        ),
        ("would be lost", r"Records \[(\d+), (\d+)\) would be lost if it led", _anything),
        ("leads without", r"It leads without records \[(\d+), (\d+)\)", _anything),
        ("recovering", r"Broker (\d+) leads \S+ after an unclean election", s.leads_recovering),
        (
            "has all",
            r"Its log has everything that was seen to be committed, up to (\d+)",
            s.leader_lacks_nothing,
        ),
        ("unknown", r"What was committed before is unknown", _anything),
        ("not proven", r"It is not proven yet that its log", _anything),
        ("once ended", r"The log of broker (\d+), elected leader of \S+, once", _anything),
        ("suspected", r"Records \[(\d+), (\d+)\) are suspected to be lost", _anything),
        ("outside", r"Broker (\d+) leads \S+ although it was outside of the in-sync", _anything),
        ("since", r"Records \[\d+, \d+\) were committed since it was seen in", _anything),
        ("no proof", r"These brokers know no (?:leader epochs|topic ids)", _anything),
        ("no epochs", r"There is no proof: the metadata has no leader epochs", _anything),
        (
            "recreated",
            r"Recreated or lost: the log of leader \d+ of \S+ lacks records",
            s.recreated_or_lost,
        ),
        ("either", r"Either the topic was deleted and created again, or", s.recreated_or_lost),
    ],
    "KafkaLeaderAlone": [
        ("only", r"Leader (\d+) is the only replica of \S+ in sync", s.alone),
        (
            "on its disk",
            r"(?:At most )?(\d+) records? (?:is|are) on its disk alone",
            s.at_most_alone,
        ),
        ("unknown", r"How many of its records are on no other disk is unknown", _anything),
    ],
    "KafkaZombieLeader": [
        (
            "acts",
            r"Broker (\d+) acts as leader of \S+ at epoch (\d+); .* at epoch (\d+)",
            s.acted_as_leader,
        ),
        ("grew", r"Its log grew by \d+ records? since", _anything),
        ("still", r"Its log does not grow", _anything),
    ],
    "KafkaDivergence": [("all", r"", _anything)],
    "KafkaLineageAnomaly": [
        ("went back", r"The leader epochs of \S+ went back from", s.was_restored),
        ("nothing", r"Nothing that was seen before is compared", s.was_restored),
        ("clients", r"Clients that know a later epoch", _anything),
        ("all", r"", s.never),
    ],
    "KafkaStaleBrokerView": [
        ("knows", r"Broker (\d+) still knows leader epoch (\d+) of \S+; leader", s.knew_epoch),
        ("follows", r"It does not follow the new leader", _anything),
        ("behind", r".* behind the metadata log", _anything),
        ("effect", r"Its clients get old leaders", _anything),
    ],
}
_COMPILED: Final = {
    name: [(label, re.compile(pattern), check) for label, pattern, check in lines]
    for name, lines in TABLE.items()
}
_END: Final = re.compile(r"(?<=[.;:])\s+(?=[A-Z])|(?<=\.)\s+(?=\d)")


def judge_sentences(case: Case, counts: Counter[str]) -> list[tuple[str, str]]:
    """(kind of failure, sentence) for each sentence that is false or unknown."""
    lines = _COMPILED.get(case.name)
    if lines is None or case.alert.state == "resolved":
        return []
    found = []
    for sentence in split(case.alert.annotations["description"]):
        for label, pattern, check in lines:
            match = pattern.match(sentence)
            if match is None:
                continue
            key = f"{case.name}: {label}"
            counts[f"sentence {key}"] += 1
            if not check(case, match):
                found.append((f"false: {key}", sentence))
            break
        else:
            found.append((f"unknown sentence: {case.name}", sentence))
    return found


def split(text: str) -> list[str]:
    """Sentences, also those that follow a semicolon or a colon with a capital."""
    return [part for part in _END.split(text) if part]
