#!/usr/bin/env bash
# Makes .venv from the lock. Does nothing when a stamp shows that the inputs are unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
stamp=.venv/.tidemark-setup

fail() { echo "setup: $*" >&2; exit 2; }

# Prints the major version of the default Java, nothing without one.
java_version() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  "$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1 || true
}

another="name one: make setup PYTHON=/path/to/python3.11"
command -v "$python" >/dev/null ||
  fail "$python not found: install Python 3.11 or later, or $another"
version=$("$python" -c 'import sys; print(sys.version.split()[0])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python $version is too old: Tidemark needs 3.11 or later; $another"

locks=(requirements/dev.lock)
case "$(java_version)" in
  17 | 21) ;;
  *) locks+=(requirements/java.lock) ;;
esac
digest=$(cat "$0" pyproject.toml lab/pyproject.toml "${locks[@]}" | cat - <(echo "$version ${locks[*]}") |
  sha256sum | cut -d ' ' -f 1)
[ "$(cat "$stamp" 2>/dev/null)" = "$digest" ] && exit 0

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  echo "setup: making .venv with Python $version"
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
      fail "$python cannot make virtual environments: apt-get install python3-venv"
    # One apt at a time: system.sh may run beside this.
    export DEBIAN_FRONTEND=noninteractive
    flock /tmp/tidemark-apt.lock sh -c "apt-get update -qq &&
      apt-get install -y -qq --no-install-recommends python3-venv" >/dev/null
  fi
  rm -rf .venv
  "$python" -m venv .venv
fi
rm -f "$stamp"
# Python compiles the modules that are imported; pip would compile all.
pip=(.venv/bin/python -m pip --disable-pip-version-check install --quiet --no-compile)
for lock in "${locks[@]}"; do
  echo "setup: installing from $lock"
  "${pip[@]}" --require-hashes -r "$lock"
done
"${pip[@]}" --no-deps --no-build-isolation -e . -e lab
echo "$digest" >"$stamp"
