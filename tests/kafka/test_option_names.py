"""Messages name the options of the connection that they are about."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemark.collect.cluster_choice import select_clusters
from tidemark.core.errors import ConfigError
from tidemark.kafka.options import FromProperties, client_options, option_error
from tidemark.settings import Cluster, Connection, Settings


def test_each_connection_has_its_names() -> None:
    cluster = Cluster(name="west", client={"ssl_password": "x"})

    def message(connection: Connection, option: str) -> str:
        return str(option_error(connection, option, "it is wrong"))

    assert message(Connection(), "ssl_password") == (
        "configuration: kafka.client.ssl_password: it is wrong."
    )
    assert message(cluster, "ssl_password") == (
        "configuration: cluster `west`: client.ssl_password: it is wrong."
    )
    assert message(cluster, "") == "configuration: cluster `west`: client: it is wrong."
    for connection in (Connection(), cluster):
        of_file = replace(connection, client=FromProperties())
        assert (
            message(of_file, "ssl_password") == "--command-config: ssl.key.password: it is wrong."
        )
        assert message(of_file, "request_timeout_ms").startswith(
            "--command-config: request.timeout.ms: "
        )


def test_a_cluster_of_the_command_line_has_the_options_of_kafka() -> None:
    settings = Settings(kafka=Connection(client={"securty_protocol": "SSL"}))
    (cluster,) = select_clusters(settings, "k:1", "east").clusters
    with pytest.raises(ConfigError, match=r"^configuration: kafka\.client: .*`securty_protocol`"):
        client_options(cluster)
