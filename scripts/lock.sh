#!/usr/bin/env bash
# Resolves requirements/*.lock: versions with hashes and without the address of an index, so that every
# machine installs from its own. The resolver runs in a temporary environment.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check install --quiet uv
compile=("$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate)

"${compile[@]}" pyproject.toml --extra stream --extra export --group dev --group build \
  --constraints requirements/pins.txt --output-file requirements/dev.lock >/dev/null
# What the images install: the same versions.
"${compile[@]}" pyproject.toml --extra export --constraints requirements/dev.lock \
  --output-file requirements/export.lock >/dev/null
"${compile[@]}" pyproject.toml --extra export --extra stream --constraints requirements/dev.lock \
  --output-file requirements/stream.lock >/dev/null
"${compile[@]}" --group site --output-file requirements/site.lock >/dev/null
# Extras that some machines need besides.
for extra in java kerberos; do
  "$work/venv/bin/python" - "$extra" >"$work/$extra.in" <<'END'
import sys
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"][sys.argv[1]])
END
  "${compile[@]}" "$work/$extra.in" --output-file "requirements/$extra.lock" >/dev/null
done
