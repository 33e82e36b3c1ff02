#!/usr/bin/env bash
# Tests and measures the CUDA side on a machine with a GPU, which needs a driver and no toolchain.
#
#   bench/gpu.sh build        here: builds binaries into target/gpu; copy them with the repository
#   bench/gpu.sh join [DIR]   there: joins of sets, as tables and figures; DIR: files of sets
#   bench/gpu.sh pairs [FILE] there: frequent pairs by the operator; FILE: transactions (FIMI), e.g. retail
#   bench/gpu.sh several      there: one GPU against two and all, by whole runs of the command
#   bench/gpu.sh run          there: shows the device, runs the suites and compute-sanitizer, measures
#   bench/gpu.sh tune         there: measures the kernels by the threads of a block
#
# Output goes to standard output and into $OUT (default target/gpu/out), one file per step.
# A table of the steps is printed last; the exit status is 1 if a step failed.
set -uo pipefail
cd "$(dirname "$0")/.."
gpu=target/gpu

build() {
  set -e
  cargo build --release --locked -p trommel-cli -p trommel-bench
  test_binary=$(cargo test --release --locked -p trommel-kernels --test cuda --no-run 2>&1 |
    sed -n 's/.*Executable .*(\(.*\))/\1/p')
  release=${CARGO_TARGET_DIR:-target}/release
  mkdir -p "$gpu"
  for binary in "$release/trommel" "$release/trommel-bench"; do
    strip -o "$gpu/$(basename "$binary")" "$binary"
  done
  strip -o "$gpu/cuda" "$test_binary"
  if ldd "$gpu"/trommel "$gpu"/trommel-bench "$gpu"/cuda | grep -E 'lib(cuda|nv)'; then
    echo "a binary needs a CUDA library" >&2
    exit 1
  fi
  du -ch "$gpu"/trommel "$gpu"/trommel-bench "$gpu"/cuda
}

rows=()
failed=0

# step NAME SECONDS COMMAND...: runs it within the time and keeps its output and a row for the table.
step() {
  local name=$1 limit=$2
  shift 2
  printf '\n== %s\n' "$name"
  local begin=$SECONDS status=0
  timeout "$limit" "$@" >"$out/$name.txt" 2>&1 || status=$?
  cat "$out/$name.txt"
  local result=passed
  if [ "$status" -ne 0 ]; then
    result="FAILED ($status)"
    failed=1
  fi
  rows+=("$(printf '| %-22s | %-12s | %4s s |' "$name" "$result" $((SECONDS - begin)))")
}

table() {
  local device
  device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -1)
  printf '\n%s, %s\n\n' "$device" "$(date -u +%F)"
  printf '| %-22s | %-12s | %6s |\n' step result time
  printf '|:%.0s' 1; printf -- '-%.0s' {1..23}; printf '|'; printf -- '-%.0s' {1..14}; printf '|-------:|\n'
  printf '%s\n' "${rows[@]}"
  exit "$failed"
}

# The suites under a tool of compute-sanitizer, which says itself when it has found something.
sanitize() {
  step "$1" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 5 \
    --show-backtrace no "$gpu/cuda" suite:: --test-threads=1
}

run() {
  out=${OUT:-$gpu/out}
  mkdir -p "$out"
  export TROMMEL_REQUIRE_CUDA=1
  step devices 60 "$gpu/trommel" devices
  step suites 120 "$gpu/cuda" suite:: --test-threads=1
  sanitize memcheck 150
  sanitize racecheck 600
  sanitize synccheck 100
  step bench 200 "$gpu/trommel-bench" overlap --pairs 4000000 --rounds 5 --without scalar,portable
  # The correct counts come from one core, so there are fewer sets of more tokens.
  step signatures 100 "$gpu/trommel-bench" signatures --sets 200000 --sizes 14 --rounds 3 \
    --without scalar,portable,avx2,avx512
  step signatures-medium 150 "$gpu/trommel-bench" signatures --sets 100000 --sizes 50 --rounds 3 \
    --without scalar,portable,avx2,avx512
  step signatures-large 100 "$gpu/trommel-bench" signatures --sets 50000 --sizes 120 --rounds 3 \
    --without scalar,portable,avx2,avx512
  step supports 120 "$gpu/trommel-bench" supports
  step supports-large 120 "$gpu/trommel-bench" supports --matrices 64000:156250:0.01:40 \
    --rounds 3 --without-batmaps --without-counters
  local drawn
  drawn=$(mktemp -d)
  step supports-densities 200 "$gpu/trommel-bench" supports --rounds 3 --figures "$drawn" \
    --densities .01,.03,.1,.3,1,2,3,10
  cp "$drawn"/supports-density.svg "$out/"
  step conjunctive-query 500 "$gpu/trommel-bench" conjunctive-query --only counts,device,paper \
    --indexes 200000:4194304:64000000,30000:25000:400000 --figures "$drawn"
  cp "$drawn"/conjunctive-query-*.svg "$out/"
  step epsilon-join 100 "$gpu/trommel-bench" epsilon-join --only device
  local distribution
  for distribution in uniform clusters correlated; do
    step "epsilon-join-$distribution" 200 "$gpu/trommel-bench" epsilon-join --only figure \
      --distributions $distribution --figures "$drawn"
  done
  cp "$drawn"/epsilon-join-*.svg "$out/"
  step epsilon-join-tiles 200 "$gpu/trommel-bench" epsilon-join --only device \
    --ways tiles --parts 1 --rounds 3 \
    --vectors topics:100000:384:0.3,topics:60000:784:0.3,topics:1000000:128:0.15
  step epsilon-join-operator 200 "$gpu/trommel-bench" epsilon-join --only operator --device cuda \
    --rounds 3
  step waves 150 "$gpu/trommel-bench" waves --devices cpu,cuda
  step bench-many-sets 120 "$gpu/trommel-bench" overlap --pairs 30000000 --candidates 10 \
    --sizes 14 --rounds 3 --without scalar,portable,avx2
  table
}

# Joins over files of sets (and right answers) or over generated ones, as tables in the output of the
# steps and as figures in $OUT/figures.tar.gz: all thresholds by the algorithms and kernels of the
# paper and by ours; one core; sizes of chunks; counts and pairs; threads of a block.
join() {
  out=${OUT:-$gpu/out}
  mkdir -p "$out"
  local drawn figures
  drawn=$(mktemp -d)
  figures=$drawn/figures
  mkdir "$figures"
  local set_join=("$gpu/trommel-bench" set-join --figures "$figures")
  if [ -n "${1:-}" ]; then set_join+=(--data "$1"); fi
  local thresholds=90,80,70,60,50 verify
  verify=$(echo all_pairs:{cpu,a,b,c,warp} {pp_join,group_join}:{cpu,b,warp} \
    auto:{cpu,auto} gpu_signatures:auto)
  step join 330 "${set_join[@]}" --thresholds $thresholds --verify "${verify// /,}" \
    --rounds 5 --seconds 0.2
  step join-one-core 60 "${set_join[@]}" --thresholds $thresholds --algorithms auto,pp_join \
    --rounds 3 --seconds 0.2
  step join-chunks 60 "${set_join[@]}" --thresholds 50 --verify pp_join:b --rounds 1 \
    --chunk-bytes 262144,1048576,5242880,20971520
  step join-outputs 60 "${set_join[@]}" --thresholds 80,50 --outputs count,pairs --rounds 5 \
    --seconds 0.2 --verify pp_join:b,auto:cpu,gpu_signatures:auto
  step join-threads 90 "$gpu/trommel-bench" overlap --pairs 1000000 --rounds 3 \
    --sizes 14,50,120,500 --threads 32,64,128,256 --without scalar,portable,avx2,avx512 \
    --figures "$figures"
  # One file to be carried back, whatever failed.
  tar -czf "$out/figures.tar.gz" -C "$drawn" figures && rm -r "$drawn"
  table
}

# Frequent pairs by the operator, from batches to rows: generated transactions (4,000 items at 5 %,
# 64,000 at 1 %) and those of a file.
pairs() {
  out=${OUT:-$gpu/out}
  mkdir -p "$out"
  local pairs=("$gpu/trommel-bench" frequent-pairs --device cuda --layouts tensor,bitmap,batmap)
  step pairs 300 "${pairs[@]}"
  if [ -n "${1:-}" ]; then
    step pairs-file 120 "${pairs[@]}" --files-only --files "$1:10"
    step supports-file 60 "$gpu/trommel-bench" supports --files "$1:10"
  fi
  table
}

# A pipeline that counts the answers of an operator: SOURCE is the `with` of `generate` for its inputs.
counting() {
  local operator=$1 source=$2 with=$3 inputs='"in"' second=""
  if [ -n "${4:-}" ]; then
    second=",{\"id\":\"more\",\"operator\":\"generate\",\"with\":$4}"
    inputs='"in","more"'
  fi
  echo "{\"stages\":[{\"id\":\"in\",\"operator\":\"generate\",\"with\":$source}$second," \
    "{\"id\":\"answer\",\"operator\":\"$operator\",\"inputs\":[$inputs],\"with\":$with}," \
    "{\"id\":\"rows\",\"operator\":\"discard\",\"inputs\":[\"answer\"]}]}"
}

# Runs a pipeline on each choice of devices: the wall seconds, and the counters of the stage.
on_devices() {
  local name=$1 pipeline=$2 device round
  echo "$pipeline" >"$out/$name.json"
  for round in 1 2 3; do
    for device in '["cuda:0"]' '["cuda:0","cuda:1"]' '"cuda:all"' '"auto"'; do
      "$gpu/trommel" run --quiet --report "$out/report.json" "$out/$name.json" \
        --set "stages.answer.with.device=$device" || return 1
      echo "$name $device, run $round"
      grep -E '"(wall_seconds|items_out|waves_on_device|devices|devices_failed|kernel_seconds|bytes_to_device|opening_seconds|overlap)"' \
        "$out/report.json" | tr -s ' \n' ' '
      echo
    done
  done
}

several() {
  out=${OUT:-$gpu/out}
  mkdir -p "$out"
  export -f on_devices
  export out gpu
  local threshold sets vectors len dims
  sets='{"kind":"sets","items":1000000,"alphabet":100000,"size_min":10,"size_max":120}'
  for threshold in 0.3 0.4 0.5; do
    step "several-join-$threshold" 400 bash -c 'on_devices "$0" "$1"' "several-join-$threshold" \
      "$(counting set_similarity_join "$sets" "{\"threshold\":$threshold,\"output\":\"count\"}")"
  done
  sets='{"kind":"sets","items":1000000,"alphabet":64000,"skew":0,"size_min":320,"size_max":960}'
  step several-pairs 600 bash -c 'on_devices "$0" "$1"' several-pairs \
    "$(counting frequent_pairs "$sets" '{"support":150,"memory_max":34359738368}')"
  for vectors in 60000:784 1000000:384; do
    len=${vectors%:*} dims=${vectors#*:}
    step "several-vectors-$dims" 600 bash -c 'on_devices "$0" "$1"' "several-vectors-$dims" \
      "$(counting epsilon_join \
        "{\"kind\":\"vectors\",\"items\":$len,\"dims\":$dims,\"distribution\":\"clusters\",\"clusters\":64}" \
        '{"epsilon":0.5,"output":"count","memory_max":34359738368}')"
  done
  sets='{"kind":"sets","items":4194304,"alphabet":200000,"size_min":8,"size_max":23,"seed":1}'
  step several-queries 400 bash -c 'on_devices "$0" "$1"' several-queries \
    "$(counting conjunctive_query "$sets" \
      '{"output":"count","batch_queries":4096,"memory_max":34359738368}' \
      '{"kind":"sets","items":4000000,"alphabet":200000,"size_min":2,"size_max":4,"seed":2}')"
  table
}

tune() {
  out=${OUT:-$gpu/out}
  mkdir -p "$out"
  step tune 400 "$gpu/trommel-bench" overlap --pairs 4000000 --rounds 3 --sizes 14,50,120,500 \
    --threads 32,64,128,256 --without scalar,portable,avx2,avx512
  table
}

case "${1:-}" in
  build | run | several | tune) "$1" ;;
  join | pairs) "$1" "${2:-}" ;;
  *)
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
