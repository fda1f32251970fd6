"""The files for deployment against the schemas of others, and by the linters of this machine.

`schemas/` has the schema of the Compose specification (Apache-2.0, compose-spec/compose-spec at
170098b) and those of the custom resources of the Prometheus operator (Apache-2.0, 2026-08) and of
Strimzi (Apache-2.0, 1.3): without descriptions, and an unknown field is an error.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.deploy.test_charts import EVERYTHING, INGRESS, SECURE, rendered
from tests.deploy.test_deploy import UNITS, compose
from tests.verbs.run import tidemark
from tidemark.assets import KUBERNETES_RULES, list_assets
from tidemark.collect.cluster_choice import select_clusters
from tidemark.collect.metadata.inventory import Inventory
from tidemark.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
SCHEMAS = Path(__file__).parent / "schemas"
RESOURCES = json.loads((SCHEMAS / "resources.json").read_text(encoding="utf-8"))
ASSETS = dict(list_assets())
CUSTOM = [
    path
    for path in ASSETS
    if path.startswith(("deploy/strimzi/", KUBERNETES_RULES)) or path.endswith("/monitor.yaml")
]
# systemd-analyze: of 10, lower is better.
MAX_EXPOSURE = 2.0


def optional(tool: str) -> str:
    """These programs are not among those that `make system` installs."""
    return shutil.which(tool) or pytest.skip(f"{tool} is not installed")


def check(document: dict[str, Any]) -> None:
    schema = RESOURCES[f"{document['apiVersion']} {document['kind']}"]
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("path", CUSTOM)
def test_custom_resources_follow_the_schemas_of_their_operators(path: str) -> None:
    documents = list(yaml.safe_load_all(ASSETS[path]))
    assert documents
    for document in documents:
        check(document)


@pytest.mark.parametrize("values", [EVERYTHING, SECURE, INGRESS], ids=["all", "secure", "ingress"])
def test_what_the_chart_renders_for_the_prometheus_operator_follows_its_schemas(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    kinds = set()
    for document in rendered(tmp_path, values):
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            check(document)
            kinds.add(document["kind"])
    assert kinds == {"ServiceMonitor"} | ({"PrometheusRule"} if values is EVERYTHING else set())


def test_the_schemas_refuse_a_misspelled_field() -> None:
    (document, *_) = yaml.safe_load_all((DEPLOY / "strimzi" / "topics.yaml").read_text())
    document["spec"]["partition"] = 1
    with pytest.raises(jsonschema.ValidationError, match="partition"):
        check(document)


def test_compose_follows_the_specification() -> None:
    schema = json.loads((SCHEMAS / "compose.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    document = compose()
    validator.validate(document)
    document["services"]["export"]["depends_on"]["x"] = {"condition": "healthy"}
    assert not validator.is_valid(document)


def test_compose_has_load_and_watches_only_others_topics() -> None:
    services = compose()["services"]
    topic = next(w for w in services["topic"]["command"] if w.startswith("--topic="))
    assert topic in services["load"]["command"]
    settings = load_settings(DEPLOY / "compose" / "config" / "tidemark.yaml", {})
    (cluster,) = select_clusters(settings, None, None).clusters
    watched = Inventory(cluster, 1)
    assert not any(map(watched.wants, settings.topics.names))
    assert watched.wants(topic.removeprefix("--topic="))


def kustomize(folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [optional("kubectl"), "kustomize", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return list(yaml.safe_load_all(ran.stdout))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `kubernetes` of an export, as the page says."""
    folder = tmp_path_factory.mktemp("assets")
    tidemark("assets", "export", str(folder))
    return folder / "deploy" / "kubernetes"


def test_the_documented_overlay_leaves_user_and_group_to_openshift(
    exported: Path, tmp_path: Path
) -> None:
    page = (DEPLOY.parent / "docs" / "deploy.md").read_text(encoding="utf-8")
    (overlay,) = re.findall(r"^  ```yaml\n(  resources:.*?)^  ```", page, re.MULTILINE | re.DOTALL)
    shutil.copytree(exported, tmp_path / "kubernetes")
    (tmp_path / "openshift").mkdir()
    (tmp_path / "openshift" / "kustomization.yaml").write_text(textwrap.dedent(overlay))
    pods = [
        document["spec"]["template"]["spec"]
        for document in kustomize(tmp_path / "openshift")
        if document["kind"] in {"Deployment", "StatefulSet"}
    ]
    kept = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert [pod["securityContext"] for pod in pods] == [kept] * 3


def test_kustomize_builds_what_kubernetes_accepts(exported: Path) -> None:
    kinds = []
    for document in kustomize(exported):
        kinds.append(document["kind"])
        if f"{document['apiVersion']} {document['kind']}" in RESOURCES:
            check(document)
        else:
            kubernetes_validate.validate(document, "1.33", strict=True)
    assert {"Deployment", "StatefulSet", "ConfigMap", "PodMonitor", "PrometheusRule"} <= {*kinds}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_accepts_the_units(path: Path, tmp_path: Path) -> None:
    tool = optional("systemd-analyze")
    # systemd looks for the program.
    program = tmp_path / "tidemark"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    unit = tmp_path / path.name
    text = path.read_text(encoding="utf-8").replace("/opt/tidemark/bin/tidemark", str(program))
    unit.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [tool, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    ran = subprocess.run(
        [tool, "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", ran.stdout)
    assert found is not None, ran.stdout + ran.stderr
    assert float(found[1]) <= MAX_EXPOSURE
