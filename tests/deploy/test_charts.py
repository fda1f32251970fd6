"""The Helm chart, the image's build file and Strimzi's resources: their linters, and our code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from dashboards import health_rules, replication_rules
from tests.conftest import ROOT
from tests.verbs.run import tidemark
from tidemark.cli import cli
from tidemark.core.links import RUNBOOK_URL
from tidemark.kafka.topics import topic_specifications
from tidemark.settings import Settings, Topics, load_settings
from tidemark.verbs.check_config.acls import FULL, verb_grants

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "tidemark"
BIN = Path(sys.executable).parent
EVERYTHING = {
    "existingSecret": "kafka",
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "replication": True},
    "dashboards": {"enabled": True},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "podDisruptionBudget": {"enabled": True},
    "stream": {"storageClassName": "fast", "extraArgs": ["--log-level", "debug"]},
    "tolerations": [{"key": "monitoring", "operator": "Exists"}],
    "nodeSelector": {"disk": "ssd"},
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "monitoring",
}
WEB_FILE = "/run/secrets/tidemark/web.yaml"
BASIC = {
    "username": {"name": "scrape", "key": "user"},
    "password": {"name": "scrape", "key": "password"},
}
# TLS and users of two processes, which listen on other ports; one of them demands certificates.
SECURE: dict[str, Any] = {
    "existingSecret": "kafka",
    "serviceMonitor": {
        "enabled": True,
        "tlsConfig": {
            "ca": {"secret": {"name": "kafka", "key": "ca.crt"}},
            "serverName": "tidemark",
        },
        "basicAuth": BASIC,
    },
    "collect": {"tcpProbes": True},
    "config": {
        "collect": {"listen": "[::]:8081", "web_config_file": WEB_FILE},
        "export": {"listen": "0.0.0.0:8080", "web_config_file": WEB_FILE},
    },
}
OPENSHIFT = {"podSecurityContext": {"runAsUser": None, "fsGroup": None}}
# A cluster's CA and a user's certificate in two Secrets, and what a company adds to every pod.
STRIMZI: dict[str, Any] = {
    "nameOverride": "replication",
    "secrets": ["production-cluster-ca-cert", "tidemark"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "trust", "configMap": {"name": "company-ca"}}],
    "extraVolumeMounts": [{"name": "trust", "mountPath": "/etc/ssl/certs", "readOnly": True}],
    "image": {"repository": "registry.example.org/tidemark", "slim": "tidemark:slim"},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
}
INGRESS: dict[str, Any] = {
    "fullnameOverride": "watch",
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "hosts": ["kafka.example.org"],
        "tls": [{"secretName": "tls", "hosts": ["kafka.example.org"]}],
    },
    "serviceMonitor": {
        "enabled": True,
        "namespace": "monitoring",
        "relabelings": [{"targetLabel": "team", "replacement": "kafka"}],
        "metricRelabelings": [{"action": "labeldrop", "regex": "pod"}],
    },
}
# Numbers that Helm writes as 2.68435456e+08, and sections that are empty.
NUMBERS: dict[str, Any] = {
    "config": {
        "collect": {"spool_bytes": 268435456, "pass_seconds": None},
        "export": {"max_series": 1000000},
        "notify": {"receivers": [{"name": "hook", "url": "http://hook.example.org/a"}]},
    }
}
WITHOUT_STREAM = {"stream": {"enabled": False}, "collect": {"spool": None}}
VALUES = {
    "plain": {},
    "all": EVERYTHING,
    "openshift": OPENSHIFT,
    "secure": SECURE,
    "strimzi": STRIMZI,
    "ingress": INGRESS,
    "numbers": NUMBERS,
    "without stream": WITHOUT_STREAM,
}
# The oldest that the chart allows, and a newer one.
KUBERNETES = ("1.25", "1.33")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    tool, *arguments = command
    return subprocess.run(
        [str(BIN / tool), *arguments], capture_output=True, text=True, check=False
    )


def helm(tmp_path: Path, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return run("helm", "template", "kafka", str(CHART), "--namespace", "n", "--values", str(file))


def rendered(tmp_path: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    ran = helm(tmp_path, values)
    assert ran.returncode == 0, ran.stderr
    return [document for document in yaml.safe_load_all(ran.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == kind]


@pytest.mark.parametrize(
    "command",
    [
        ("helm", "lint", "--strict", str(CHART)),
        ("hadolint", str(DEPLOY / "docker" / "Dockerfile")),
    ],
    ids=["chart", "build file"],
)
def test_the_linter_accepts_it(command: tuple[str, ...]) -> None:
    ran = run(*command)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_kubernetes_and_tidemark_accept_what_the_chart_renders(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    checked, documents = 0, rendered(tmp_path, values)
    given = configured(tmp_path, documents)
    # Files of a Secret are not there.
    if values is not SECURE:
        tidemark("check-config", "--config", str(tmp_path / "tidemark.yaml"))
    if values is NUMBERS:
        assert (given.collect.spool_bytes, given.export.max_series) == (268435456, 1000000)
    for document in documents:
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            continue
        for version in KUBERNETES:
            kubernetes_validate.validate(document, version, strict=True)
            checked += 1
    assert checked >= 2 * 6


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for document in (*of_kind(documents, "Deployment"), *of_kind(documents, "StatefulSet")):
        pod = document["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        yield container["args"][0], pod, container


def configured(tmp_path: Path, documents: list[dict[str, Any]]) -> Settings:
    """The configuration of a release, as Tidemark reads it."""
    (text,) = (
        document["data"]["tidemark.yaml"]
        for document in of_kind(documents, "ConfigMap")
        if "tidemark.yaml" in document["data"]
    )
    path = tmp_path / "tidemark.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, {})


def test_each_process_listens_where_it_is_probed_and_scraped(tmp_path: Path) -> None:
    documents = rendered(tmp_path, EVERYTHING)
    settings = configured(tmp_path, documents)
    found = {}
    for verb, pod, container in pods(documents):
        found[verb] = container
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        # Flags that do not exist are refused.
        command.make_context(verb, container["args"][1:], parent=click.Context(cli))
        (port,) = container["ports"]
        assert getattr(settings, verb).listen == f"0.0.0.0:{port['containerPort']}"
        assert container["livenessProbe"]["httpGet"]["port"] == port["name"] == "http"
        assert container["readinessProbe"]["httpGet"]["path"] == "/-/ready"
        assert pod["terminationGracePeriodSeconds"] > 10
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted["secrets"] == "/run/secrets/tidemark"
    assert found.keys() == {"collect", "stream", "export"}
    state = {mount["name"]: mount["mountPath"] for mount in found["stream"]["volumeMounts"]}
    assert settings.stream.checkpoint.startswith(state["state"])
    assert found["stream"]["args"] == ["stream", "--log-level", "debug"]
    (monitor,) = of_kind(documents, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    services = of_kind(documents, "Service")
    assert len(services) == 3
    assert all(selected <= service["metadata"]["labels"].items() for service in services)
    # The alerts and the rules lead to the service of the export process.
    assert settings.notify.external_url == "http://kafka-tidemark-export.n:9754"
    assert "kafka-tidemark-export" in {service["metadata"]["name"] for service in services}


@pytest.mark.parametrize("persistent", [False, True])
def test_the_collector_has_a_volume_for_what_waits_for_kafka(
    tmp_path: Path, persistent: bool
) -> None:
    documents = rendered(tmp_path, {"collect": {"spool": {"persistent": persistent}}})
    pod, container = {verb: rest for verb, *rest in pods(documents)}["collect"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    configuration = of_kind(documents, "ConfigMap")[0]["data"]["tidemark.yaml"]
    assert f"spool_directory: {mounted['state']}/spool" in configuration
    (volume,) = (each for each in pod["volumes"] if each["name"] == "state")
    claims = of_kind(documents, "PersistentVolumeClaim")
    if not persistent:
        assert (volume["emptyDir"], claims) == ({"sizeLimit": "512Mi"}, [])
        return
    (claim,) = claims
    assert volume["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert claim["spec"]["resources"] == {"requests": {"storage": "512Mi"}}
    for version in KUBERNETES:
        kubernetes_validate.validate(claim, version, strict=True)


def test_without_a_spool_the_collector_has_no_volume_and_keeps_events_in_memory(
    tmp_path: Path,
) -> None:
    documents = rendered(tmp_path, {"collect": {"spool": None}})
    for verb, pod, container in pods(documents):
        volumes = {volume["name"] for volume in pod["volumes"]}
        if verb == "stream":
            # Of the claim's template.
            volumes.add("state")
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, verb
    assert "spool" not in of_kind(documents, "ConfigMap")[0]["data"]["tidemark.yaml"]


def test_each_pod_has_the_secrets_and_what_else_is_added(tmp_path: Path) -> None:
    documents = rendered(tmp_path, STRIMZI)
    images = {}
    for verb, pod, container in pods(documents):
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes.keys() | {"state"} == mounted.keys() | {"state"}
        secrets = {
            mounted[name]: volume["secret"]["secretName"]
            for name, volume in volumes.items()
            if "secret" in volume
        }
        assert secrets == {f"/run/secrets/{name}": name for name in STRIMZI["secrets"]}
        assert container["env"] == STRIMZI["extraEnv"]
        assert pod["topologySpreadConstraints"] == STRIMZI["topologySpreadConstraints"]
        images[verb] = container["image"].rpartition(":")[0]
    assert images == {
        "collect": "tidemark",
        "export": "tidemark",
        "stream": "registry.example.org/tidemark",
    }
    assert {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in documents} == {
        "replication"
    }


def test_links_lead_through_the_ingress_and_the_monitor_finds_the_release(tmp_path: Path) -> None:
    documents = rendered(tmp_path, INGRESS)
    (ingress,), (monitor,) = (of_kind(documents, kind) for kind in ("Ingress", "ServiceMonitor"))
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert (rule["host"], backend["name"]) == ("kafka.example.org", "watch-export")
    assert backend["name"] in {each["metadata"]["name"] for each in of_kind(documents, "Service")}
    settings = configured(tmp_path, documents)
    assert settings.notify.external_url == "https://kafka.example.org"
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["n"]}
    for endpoint in monitor["spec"]["endpoints"]:
        for kind in ("relabelings", "metricRelabelings"):
            assert endpoint[kind] == INGRESS["serviceMonitor"][kind]


def test_the_chart_is_a_subchart_that_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "tidemark").symlink_to(CHART)
    dependency = {"name": "tidemark", "version": "*-0", "condition": "tidemark.enabled"}
    chart = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart), encoding="utf-8")
    for enabled in ("true", "false"):
        ran = run("helm", "template", "x", str(tmp_path), "--set", f"tidemark.enabled={enabled}")
        assert ran.returncode == 0, ran.stderr
        assert ("kind: Deployment" in ran.stdout) is (enabled == "true")


def test_a_copy_of_the_chart_without_its_links_is_refused_once_they_are_needed(
    tmp_path: Path,
) -> None:
    """Some tools that copy charts leave links out."""
    copy = tmp_path / "tidemark"
    shutil.copytree(CHART, copy, ignore=lambda _, names: {"rules", "dashboards"} & {*names})
    assert run("helm", "template", "kafka", str(copy)).returncode == 0
    for needs in ("prometheusRule.enabled=true", "dashboards.enabled=true"):
        ran = run("helm", "template", "kafka", str(copy), "--set", needs)
        assert ran.returncode == 1
        assert "take the chart from a checkout" in ran.stderr


def test_the_chart_carries_the_rules_and_dashboards(tmp_path: Path) -> None:
    url = "https://runbooks.example.org/kafka"
    documents = rendered(tmp_path, {**EVERYTHING, "runbookUrl": url})
    for rules, file in zip(
        of_kind(documents, "PrometheusRule"),
        (health_rules.FILE, replication_rules.FILE),
        strict=True,
    ):
        assert rules["spec"] == yaml.safe_load(file.prometheus().replace(RUNBOOK_URL, url))
    boards = {
        name: text
        for document in of_kind(documents, "ConfigMap")
        for name, text in document["data"].items()
        if name.endswith(".json")
    }
    assert boards == {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "dashboards" / "grafana").glob("*.json")
    }
    plain = rendered(tmp_path, {})
    assert {document["kind"] for document in plain} == {
        *("ConfigMap", "Deployment", "Service", "ServiceAccount", "StatefulSet")
    }


def test_openshift_chooses_user_and_group(tmp_path: Path) -> None:
    for _, pod, _ in pods(rendered(tmp_path, OPENSHIFT)):
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"exporter": {}}, "exporter"),
        ({"stream": {"storage": "ten"}}, "storage"),
        ({"config": {"clusters": [{"name": "x"}]}}, "bootstrap_servers"),
        ({"config": {"colect": {}}}, "colect"),
        ({"config": {"clusters": [{"nam": "x"}]}}, "nam"),
        ({"config": {"kafka": {"client": {"security_protocol": "TLS"}}}}, "security_protocol"),
        ({"ingress": {"enabled": True, "hosts": []}}, "hosts"),
        ({"runbookUrl": "runbooks"}, "runbookUrl"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"export": {"scheme": "https"}}, "scheme"),
        ({"config": {"export": {"listen": "127.0.0.1:9754"}}}, "config.export.listen"),
        ({"config": {"stream": {"listen": "9755"}}}, "config.stream.listen"),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    tmp_path: Path, values: dict[str, Any], named: str
) -> None:
    ran = helm(tmp_path, values)
    assert ran.returncode != 0
    assert named in ran.stderr


def test_the_image_installs_locked_versions_by_their_hashes() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    for name in ("export", "stream"):
        assert f"--require-hashes --requirement /requirements/{name}.lock" in text
        assert (ROOT / "requirements" / f"{name}.lock").exists()


def test_strimzis_topics_are_those_that_tidemark_creates() -> None:
    documents = yaml.safe_load_all((DEPLOY / "strimzi" / "topics.yaml").read_text(encoding="utf-8"))
    topics = Topics()
    found = {
        document["metadata"]["name"]: (document["spec"]["partitions"], document["spec"]["config"])
        for document in documents
        if document["spec"]["replicas"] == topics.replication_factor
    }
    assert found == topic_specifications(topics)


def test_strimzi_has_a_user_for_each_service_and_the_watched_cluster_with_its_rights() -> None:
    """tests/verbs/test_rights.py compares those of the verbs and FULL with docs/permissions.md."""
    documents = yaml.safe_load_all((DEPLOY / "strimzi" / "users.yaml").read_text(encoding="utf-8"))
    users = {
        (user["metadata"]["name"], user["metadata"]["labels"]["strimzi.io/cluster"]): {
            (
                operation,
                *(acl["resource"].get(key) for key in ("type", "name", "patternType")),
            )
            for acl in user["spec"]["authorization"]["acls"]
            for operation in acl["operations"]
        }
        for user in documents
    }
    grants_of = verb_grants(Settings())
    of_verbs = {
        (f"tidemark-{verb}", "monitoring"): grants_of[verb]
        for verb in ("collect", "stream", "export")
    }
    assert users == {
        user: {
            (operation, *rights_of(grant.resource))
            for grant in grants
            for operation in grant.operations
        }
        for user, grants in {("tidemark", "production"): FULL, **of_verbs}.items()
    }


def rights_of(resource: tuple[str, ...]) -> tuple[str | None, ...]:
    """Type, name and pattern of a resource in the options of kafka-acls.sh."""
    kind = resource[0].removeprefix("--")
    if len(resource) == 1:
        return kind, None, None
    return kind, resource[1], "prefix" if "prefixed" in resource else "literal"
