#!/bin/sh
# Runs each fuzz target for a while: fuzz.sh [SECONDS]. It needs a C++ compiler for libFuzzer and works on the
# stable toolchain: the coverage counters are flags of LLVM, which rustc accepts only with an explicit opt-in.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
command -v c++ >/dev/null 2>&1 || {
  echo "Missing: a C++ compiler. Install it with:  sudo apt-get install -y g++" >&2
  exit 1
}
host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
for crate in supervisor/crates/plugin-client supervisor/crates/sanitize; do
  for source in "$crate"/fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    corpus=target/fuzz/corpus/$target
    mkdir -p "$corpus"
    seeds=$crate/fuzz/seeds/$target
    [ -d "$seeds" ] || seeds=
    # The target triple keeps the flags away from build scripts and proc macros, which cannot link them.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" tests/scripts/progress.sh "Building the fuzz target $target" \
      cargo build --release --manifest-path "$crate/fuzz/Cargo.toml" --target "$host" --target-dir target/fuzz
    echo "Fuzzing $target for $seconds s"
    # shellcheck disable=SC2086
    "target/fuzz/$host/release/$target" -max_total_time="$seconds" -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="target/fuzz/$target-" "$corpus" $seeds
  done
done
