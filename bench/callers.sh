#!/usr/bin/env bash
# Runs what docs/quickstart.md shows, as it stands and from top to bottom, against
# `rlnode dev`, and compares what it prints with the page: a block of text is what the
# block of code before it must print, where … is anything. What was started is ended by its
# process id.
#
#   bench/callers.sh        everything
#   bench/callers.sh -n     show the blocks only
#
# It needs curl, protoc, python3-grpcio, Node and npm. As root on Debian it installs what is
# missing, and runs the cluster in a network namespace of its own, so that no port is taken.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/quickstart.md

# split writes each block to $1/NUMBER.LANGUAGE, in the order of the page.
split() {
  awk -v dir="$1" '
    /^```/ && inside {inside = 0; close(out); next}
    /^```./ {inside = 1; out = sprintf("%s/%03d.%s", dir, NR, substr($0, 4)); printf "" > out; next}
    inside {print > out}' "$page"
}

run() { # FILE: its output
  case $1 in
    *.sh) . "$1" ;;
    *.python) PYTHONPATH=bin/callers/python /usr/bin/python3 "$1" ;;
    *.js) NODE_PATH=bin/callers/node/node_modules node "$1" ;;
    *) echo "no way to run $1" >&2; return 1 ;;
  esac
}

# alike compares files line by line.
alike() { # WANT GOT
  local want got n=0
  while read -r want <&3; do
    n=$((n + 1))
    IFS= read -r got <&4 || got="(nothing)"
    want=$(printf %s "$want" | sed 's/[][\\*?]/\\&/g; s/…/*/g')
    # shellcheck disable=SC2053 # a pattern
    [[ $got == $want ]] || { printf 'line %d of it: want %s\n            got %s\n' "$n" "$want" "$got" >&2; return 1; }
  done 3<"$1" 4<"$2"
  [ "$(wc -l <"$2")" = "$n" ] || { echo "it prints $(wc -l <"$2") lines, want $n" >&2; return 1; }
}

# npm has been called already where there may be no network.
npm() { [ -d bin/callers/node/node_modules ]; }

play() {
  bin/rlnode dev >"$DIR/dev.log" 2>&1 &
  echo $! >"$DIR/pid"
  for _ in $(seq 100); do
    grep -q '^ready' "$DIR/dev.log" && break
    kill -0 "$(cat "$DIR/pid")" || { cat "$DIR/dev.log" >&2; return 1; }
    sleep 0.1
  done
  : >"$DIR/out"
  for block in "$DIR"/blocks/*; do
    if [ "${block##*.}" = text ]; then
      alike "$block" "$DIR/out" || { echo "$page: the text at line $(basename "$block" .text) is not what the code before it prints" >&2; return 1; }
      echo "ok: what ends at line $(basename "$block" .text | sed 's/^0*//') of $page" >&2
    else
      run "$block" >"$DIR/out"
    fi
  done
}

if [ "${1:-}" = play ]; then
  ip link set lo up 2>/dev/null || true
  play
  exit
fi

DIR=$(mktemp -d)
export DIR
finish() {
  [ -e "$DIR/pid" ] && kill "$(cat "$DIR/pid")" 2>/dev/null && tail --pid="$(cat "$DIR/pid")" -f /dev/null
  rm -rf "$DIR"
}
trap 'code=$?; finish || true; exit $code' EXIT
mkdir "$DIR/blocks"
split "$DIR/blocks"
if [ "${1:-}" = -n ]; then
  head -n 1000 "$DIR"/blocks/*
  exit
fi

[ -x bin/rlnode ] || { echo "bin/rlnode is missing: run make build first" >&2; exit 1; }
packages="python3-grpcio python3-protobuf protobuf-compiler protobuf-compiler-grpc curl"
if ! /usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null || ! command -v protoc grpc_python_plugin curl >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "missing: apt install $packages" >&2; exit 1; }
  apt-get install -y --no-install-recommends $packages >&2
fi
# shellcheck disable=SC2046 # words
command $(grep '^npm install' "$page") >&2

if [ "$(id -u)" = 0 ] && command -v unshare ip >/dev/null; then
  unshare -n "$0" play
else
  play
fi
