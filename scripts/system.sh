#!/usr/bin/env bash
# Installs Debian's prometheus, prometheus-alertmanager, chromium and openssl for the tests, as root;
# starts no service. Elsewhere it prints what is missing: those tests are skipped; with CI=true it
# fails.
set -euo pipefail

declare -A package=([prometheus]=prometheus [promtool]=prometheus [chromium]=chromium
  [prometheus-alertmanager]=prometheus-alertmanager [amtool]=prometheus-alertmanager [openssl]=openssl)
missing() {
  for tool in "${!package[@]}"; do command -v "$tool" >/dev/null || echo "$tool"; done | sort
}

tools=$(missing)
[ -z "$tools" ] && exit 0

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
  # Debian's way to keep packages from starting their services, Prometheus on all addresses.
  policy=/usr/sbin/policy-rc.d
  saved=$(mktemp)
  if [ -e "$policy" ]; then
    cp -p "$policy" "$saved"
    trap 'cp -p "$saved" "$policy"; rm -f "$saved"' EXIT
  else
    trap 'rm -f "$policy" "$saved"' EXIT
  fi
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  export DEBIAN_FRONTEND=noninteractive
  echo "system: installing" $tools
  packages="prometheus prometheus-alertmanager chromium fonts-dejavu-core openssl"
  # One apt at a time: setup.sh may run beside this.
  if ! flock /tmp/tidemark-apt.lock sh -c \
    "apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages" \
    >/tmp/tidemark-system.$$ 2>&1; then
    tail -n 20 /tmp/tidemark-system.$$ >&2
  fi
  rm -f /tmp/tidemark-system.$$
  tools=$(missing)
  [ -z "$tools" ] && exit 0
fi

for tool in $tools; do
  echo "system: $tool is not installed" \
    "(Debian: apt-get install --no-install-recommends ${package[$tool]}):" \
    "the tests that need it are SKIPPED"
done
[ "${CI:-}" != true ] || { echo "system: with CI=true a missing tool is a failure" >&2; exit 1; }
