#!/usr/bin/env bash
# Runs every Fuzz target of the modules named as arguments, one after the other,
# FUZZTIME each. Fails at once when one finds something; the input that did it is
# then in the package's testdata/fuzz and belongs into the commit of the fix.
set -euo pipefail

fuzztime=${FUZZTIME:-30s}
go=${GO:-go}
ran=0

for module in "$@"; do
  cd "$module"
  for package in $("$go" list ./...); do
    dir=$("$go" list -f '{{.Dir}}' "$package")
    grep -qs '^func Fuzz' "$dir"/*_test.go || continue
    for target in $("$go" test -list '^Fuzz' "$package" | grep '^Fuzz'); do
      echo "== $package $target ($fuzztime)"
      "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package"
      ran=$((ran + 1))
    done
  done
  cd - >/dev/null
done

echo "fuzz: $ran targets, nothing found"
