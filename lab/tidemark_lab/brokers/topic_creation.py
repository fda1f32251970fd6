"""Creates a topic with given replicas on any version of Kafka (CreateTopicsRequest, KIP-4).

kafka-python's admin client sends none with replicas to brokers before 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.broker_socket import BrokerSocket, fetch_metadata
from tidemark_lab.brokers.wait import wait_until

# The broker is not the controller, or there is none for now; a topic of this name is being deleted.
_NOT_YET: Final = frozenset({41, 36})
_ANSWER_SECONDS: Final = 10.0


def create_topic(
    addresses: Mapping[int, tuple[str, int]],
    name: str,
    assignments: Mapping[int, Sequence[int]],
    configs: Mapping[str, str],
    seconds: float,
) -> None:
    """Asks the controller, or a broker that forwards to it, among these brokers' addresses.

    Tries again within `seconds`. Raises ClusterError.
    """
    failure, request = "no broker answers", _request(name, assignments, configs)

    def is_created() -> bool:
        nonlocal failure
        for address in addresses.values():
            try:
                controller = fetch_metadata(address).controller_id
                asked = addresses.get(controller, address)
                with BrokerSocket(asked, _ANSWER_SECONDS) as broker:
                    answer = broker.send(request, CreateTopicsResponse).topics[0]
            except OSError as problem:
                failure = str(problem)
                continue
            if not answer.error_code:
                return True
            failure = str(kafka_errors.for_code(answer.error_code).__name__)
            if answer.error_code not in _NOT_YET:
                raise ClusterError(f"the local cluster did not create the topic {name}: {failure}")
        return False

    wait_until(is_created, seconds, f"the topic {name} is created", seen=lambda: failure)


def _request(
    name: str, assignments: Mapping[int, Sequence[int]], configs: Mapping[str, str]
) -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=p, broker_ids=list(brokers))
                    for p, brokers in assignments.items()
                ],
                configs=[
                    topic.CreatableTopicConfig(name=key, value=value)
                    for key, value in configs.items()
                ],
            )
        ],
        timeout_ms=int(_ANSWER_SECONDS * 1000),
        validate_only=False,
    )
