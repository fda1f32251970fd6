#!/usr/bin/env bash
# Builds the documentation as a web site into build/site: the assets of the wheel, with the README as the first page.
# Needs a registry once, for requirements/site.lock. A link that leads nowhere is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
env=build/site-env
if ! cmp -s requirements/site.lock "$env/site.lock"; then
  "${PYTHON:-python3}" -m venv --clear "$env"
  "$env/bin/python" -m pip --disable-pip-version-check install --quiet --no-compile --require-hashes \
    --requirement requirements/site.lock
  cp requirements/site.lock "$env/site.lock"
fi
rm -rf build/site build/site-docs
${TIDEMARK:-.venv/bin/tidemark} assets export build/site-docs >/dev/null
cp README.md CONTRIBUTING.md LICENSE build/site-docs/
cp -r dashboards build/site-docs/
rm -rf build/site-docs/dashboards/*.py build/site-docs/dashboards/__pycache__
"$env/bin/python" -m mkdocs build --quiet --strict
echo "build/site/index.html"
