#!/usr/bin/env bash
# Resolves requirements/dev.lock and requirements/java.lock: versions with hashes, and no address of any index, so
# that every machine installs from the index it is configured for. The resolver lives in a throw-away environment.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check install --quiet uv
compile=("$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate)

"${compile[@]}" pyproject.toml --extra stream --group dev --group build --constraints requirements/pins.txt --output-file requirements/dev.lock >/dev/null
"$work/venv/bin/python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["java"])' >"$work/java.in"
"${compile[@]}" "$work/java.in" --output-file requirements/java.lock >/dev/null
