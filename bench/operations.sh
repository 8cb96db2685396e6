#!/usr/bin/env bash
# Runs every block of commands of docs/operations.md as it stands, from top to
# bottom, in one shell that stops at the first command that fails. What was
# started is killed at the end, by process id.
#
#   bench/operations.sh        all of them
#   bench/operations.sh -n     show them only
set -euo pipefail
cd "$(dirname "$0")/.."

blocks() {
  awk '/^```sh$/ {inside = 1; print "echo \"== line " NR + 1 "\" >&2"; next} /^```$/ {inside = 0} inside' docs/operations.md
}
if [ "${1:-}" = -n ]; then
  blocks
  exit
fi

[ -x bin/rlnode ] || { echo "bin/rlnode is missing: run make build first" >&2; exit 1; }
DIR=/tmp/ringlimit
if [ -e $DIR ]; then
  echo "$DIR is there already: is it in use? Remove it first." >&2
  exit 1
fi
finish() {
  for f in $DIR/*.pid; do
    [ -e "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null
  done
  [ "$1" = 0 ] || { echo "failed; logs were in $DIR:" >&2; tail -n 5 $DIR/*.log >&2; }
  rm -rf $DIR
}
trap 'code=$?; finish $code || true; exit $code' EXIT
set +u
. <(blocks)
echo "every procedure ran" >&2
