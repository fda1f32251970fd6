#!/usr/bin/env bash
# Runs make targets one after another, all of them even when one fails (unless the set-up did), then prints how long
# each took and ends with 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
names=() times=() results=()
failed=0

for section in "$@"; do
  echo "== $section"
  began=$SECONDS
  if make --silent "$section" </dev/null; then result=ok; else result=FAILED; failed=1; fi
  names+=("$section") times+=($((SECONDS - began))) results+=("$result")
  [ "$section" = setup ] && [ "$result" = FAILED ] && break
done

echo "== sections"
for i in "${!names[@]}"; do printf '%-10s %5d s  %s\n' "${names[$i]}" "${times[$i]}" "${results[$i]}"; done
printf '%-10s %5d s\n' total "$SECONDS"
exit $failed
