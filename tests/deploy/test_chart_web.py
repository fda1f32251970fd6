"""The chart where the configuration has other ports, TLS, users or certificates of clients."""

from __future__ import annotations

from pathlib import Path

from tests.deploy.test_charts import (
    BASIC,
    SECURE,
    WEB_FILE,
    configured,
    of_kind,
    pods,
    rendered,
)


def test_probes_services_and_monitors_follow_the_ports_and_tls_of_the_configuration(
    tmp_path: Path,
) -> None:
    documents = rendered(tmp_path, SECURE)
    settings = configured(tmp_path, documents)
    schemes = {"collect": "HTTPS", "stream": "HTTP", "export": "HTTPS"}
    services = {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: document["spec"]["ports"]
        for document in of_kind(documents, "Service")
    }
    found = set()
    for verb, _, container in pods(documents):
        found.add(verb)
        (port,) = container["ports"]
        assert getattr(settings, verb).listen.endswith(f":{port['containerPort']}")
        for probe, path in (("livenessProbe", "/-/healthy"), ("readinessProbe", "/-/ready")):
            if verb == "collect":
                assert container[probe]["tcpSocket"] == {"port": "http"}
                assert "httpGet" not in container[probe]
            else:
                asked = {"path": path, "port": "http", "scheme": schemes[verb]}
                assert container[probe]["httpGet"] == asked
        (served,) = services[verb]
        assert (served["name"], served["targetPort"]) == (schemes[verb].lower(), port["name"])
        # The export process's service has a port of its own value.
        assert served["port"] == (9754 if verb == "export" else port["containerPort"])
    assert found == schemes.keys() == services.keys()
    (monitor,) = of_kind(documents, "ServiceMonitor")
    plain, secure = monitor["spec"]["endpoints"]
    assert (plain["port"], plain["scheme"], "tlsConfig" in plain) == ("http", "http", False)
    assert (secure["port"], secure["scheme"]) == ("https", "https")
    assert secure["tlsConfig"] == SECURE["serviceMonitor"]["tlsConfig"]
    assert plain["basicAuth"] == secure["basicAuth"] == BASIC
    assert settings.notify.external_url == "https://kafka-tidemark-export.n:9754"


def test_a_web_file_without_tls_is_probed_in_plain_text(tmp_path: Path) -> None:
    values = {
        "export": {"scheme": "HTTP"},
        "stream": {"enabled": False},
        "serviceMonitor": {"enabled": True},
        "config": {"export": {"web_config_file": WEB_FILE}},
    }
    documents = rendered(tmp_path, values)
    probed = [each["livenessProbe"]["httpGet"]["scheme"] for _, _, each in pods(documents)]
    assert probed == ["HTTP", "HTTP"]
    (monitor,) = of_kind(documents, "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == ("http", "http")
