#!/usr/bin/env bash
# Runs make targets one after another, targets joined by + side by side. Runs all of them even if one
# fails, except after a failed set-up. Prints the time of each; exits with 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Runs one target, prints its output and leaves its line of the summary in a file.
section() {
  local began=$SECONDS result=ok
  make --silent "$1" </dev/null || result=FAILED
  printf '%-10s %5d s  %s\n' "$1" $((SECONDS - began)) "$result" >"$work/$1.summary"
}

for group in "$@"; do
  names=(${group//+/ })
  for name in "${names[@]:1}"; do section "$name" >"$work/$name.log" 2>&1 & done
  for name in "${names[@]}"; do
    echo "== $name"
    if [ "$name" = "${names[0]}" ]; then
      section "$name"
      wait
    else
      cat "$work/$name.log"
    fi
    cat "$work/$name.summary" >>"$work/summary"
    if grep -q FAILED "$work/$name.summary"; then failed=1; fi
  done
  grep -q '^setup .*FAILED' "$work/summary" && break
done

echo "== sections"
cat "$work/summary"
printf '%-10s %5d s\n' total "$SECONDS"
exit $failed
