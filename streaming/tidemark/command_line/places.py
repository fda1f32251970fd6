"""Topics and partitions on the command line, in every notation that alerts, logs and tools print.

`orders-0`, `orders/0`, `orders:0`, `orders 0` (two words or one), each also behind `cluster/`.
A name may itself end in a number: `orders-0` alone is that topic where it exists, where a topic is
allowed. A number in a word of its own always belongs to the topic before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from tidemark.command_line.completion import complete_topics
from tidemark.core.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])
_NAME: Final = r"[A-Za-z0-9._-]{1,249}"
_TOPIC: Final = re.compile(_NAME)
_PARTITION: Final = re.compile(rf"(?:({_NAME})/)?({_NAME})(?:([/: ])|-)([0-9]{{1,10}})")
MAX_PARTITION: Final = 2**31 - 1


class NamedPlace(NamedTuple):
    """A topic or one partition of it, and the cluster where that was written before it."""

    topic: str
    partition: int | None = None
    cluster: str | None = None
    # The same words as the name of a topic; null where they cannot be one.
    as_topic: str | None = None

    def one_of(self, topics: Container[str]) -> NamedPlace:
        """The topic of that name where there is one, else the partition."""
        known = self.as_topic is not None and self.as_topic in topics
        return NamedPlace(self.as_topic, None, self.cluster) if known and self.as_topic else self

    @property
    def names(self) -> list[str]:
        """The topics that it may mean."""
        return [self.topic, *([] if self.as_topic is None else [self.as_topic])]

    def covers(self, topic: str, partition: int) -> bool:
        """Whether it may mean this partition, or all of its topic."""
        return topic == self.as_topic or (
            topic == self.topic and self.partition in (None, partition)
        )

    def __str__(self) -> str:
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


def read_places(words: Sequence[str]) -> list[NamedPlace]:
    """The places of a command line. Raises click.BadParameter for a word that names none."""
    places: list[NamedPlace] = []
    rest = list(words)
    while rest:
        word = rest.pop(0).strip()
        if word and rest and re.fullmatch("[0-9]{1,10}", rest[0]):
            word = f"{word} {rest.pop(0)}"
        places.append(_read(word))
    return places


def _read(word: str) -> NamedPlace:
    match = _PARTITION.fullmatch(word)
    if match is not None:
        cluster, topic, separator, number = match.groups()
        plain = separator is None and cluster is None
        return NamedPlace(topic, _number(number), cluster, word if plain else None)
    if not _TOPIC.fullmatch(word):
        raise click.BadParameter(
            f"{word!r} is no topic and no partition; write orders, orders-0 or cluster/orders-0 "
            "(a name has letters, digits, `.`, `_` and `-`)."
        )
    return NamedPlace(word)


def _number(text: str) -> int:
    if int(text) > MAX_PARTITION:
        raise click.BadParameter(f"{text} is no partition; the largest is {MAX_PARTITION}.")
    return int(text)


def place_argument(*, partition: bool = False, required: bool = False) -> Callable[[Command], Any]:
    """The argument `place`, a NamedPlace: where `partition`, of a partition; None without words."""

    def convert(
        _context: click.Context, _parameter: click.Parameter, words: Any
    ) -> NamedPlace | None:
        found = read_places(words)
        if not found:
            return None
        if len(found) > 1:
            raise click.BadParameter(f"{' '.join(words)!r} is more than one; write {found[0]}.")
        return require_partition(found[0]) if partition else found[0]

    return click.argument(
        "place",
        metavar="TOPIC-PARTITION" if partition else "TOPIC[-PARTITION]",
        nargs=-1,
        required=required or partition,
        callback=convert,
        shell_complete=complete_topics,
    )


def require_partition(place: NamedPlace) -> NamedPlace:
    """Raises click.BadParameter for a whole topic."""
    if place.partition is None:
        raise click.BadParameter(f"{place.topic} names no partition; write {place.topic}-0.")
    return place


def partition_of(text: str) -> NamedPlace:
    """The type of an option that names one partition."""
    (place,) = read_places([text])
    return require_partition(place)


def selected(
    places: Iterable[NamedPlace], topics: Container[str]
) -> tuple[set[tuple[str, int]], set[str]]:
    """The partitions and the whole topics that they name where there are these topics."""
    meant = [place.one_of(topics) for place in places]
    partitions = {(each.topic, each.partition) for each in meant if each.partition is not None}
    return partitions, {each.topic for each in meant if each.partition is None}


def choose_cluster_name(places: Iterable[NamedPlace], name: str | None) -> str | None:
    """The cluster of `--cluster` and of the places. Raises ConfigError for several."""
    named = {place.cluster for place in places} | {name}
    clusters = sorted(cluster for cluster in named if cluster is not None)
    if len(clusters) > 1:
        raise ConfigError(f"{' and '.join(clusters)} are several clusters; name one.")
    return clusters[0] if clusters else None
