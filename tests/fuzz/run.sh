#!/bin/sh
# Run every fuzzer that is built for SECONDS each: tests/fuzz/run.sh SECONDS [BUILD_DIRECTORY [OPTION...]]
#
# Options go to libFuzzer. With -seed=1, as in `make test`, a run tries the same inputs each time; `make
# fuzz` tries new ones.
# Prints one line per fuzzer. What a fuzzer finds is left in the build directory, beside its log; the
# exit status is 1 then. The committed corpus is read, never written.
set -u
if [ $# -lt 1 ]; then
    echo "usage: $0 SECONDS [BUILD_DIRECTORY [OPTION...]]" >&2
    exit 2
fi
seconds=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${2:-$root/build/fuzz}
shift $(($# < 2 ? $# : 2))
options=$*
status=0
count=0
for fuzzer in "$build"/fuzz_*; do
    [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
    count=$((count + 1))
    name=$(basename "$fuzzer")
    seeds=$root/tests/fuzz/corpus/${name#fuzz_}
    work=$build/corpus/${name#fuzz_}
    log=$build/$name.log
    mkdir -p "$work"
    # shellcheck disable=SC2086 # options are words
    set -- $options "$work"
    [ -d "$seeds" ] && set -- "$@" "$seeds"
    if "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
        -artifact_prefix="$build/$name-" "$@" >"$log" 2>&1; then
        echo "$name: ok, $(grep -o 'Done [0-9]* runs' "$log" | tail -n 1 | cut -d ' ' -f 2) runs"
    else
        echo "$name: FOUND $(grep -E 'ERROR|SUMMARY|runtime error' "$log" | head -n 1) (see $log)"
        status=1
    fi
done
if [ $count -eq 0 ]; then
    echo "no fuzzers in $build: configure with CC=clang -DFERRY_FUZZ=ON -DFERRY_SANITIZE=ON" >&2
    exit 2
fi
exit $status
