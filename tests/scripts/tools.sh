# Sourced from the repository's root: cargo's tools, at the versions that this repository is checked with. A tool of another
# version that is installed already stays as it is: ours goes below target/tools.
PATH="$PWD/target/tools/bin:$PATH"
export PATH

# cargo_tool NAME: installs `cargo NAME` at its version, unless it is there.
cargo_tool() {
  # They run for seconds and are compiled for minutes: without the last optimisations it is half of them, and what only reads
  # one file of locked versions needs none.
  level=1
  case $1 in
    deb) version=3.8.0 ;;
    deny) version=0.20.2 level=0 ;;
    nextest) version=0.9.143 ;;
  esac
  if ! cargo "$1" --version 2>/dev/null | grep -qwF "$version"; then
    tests/scripts/progress.sh "Installing cargo-$1 $version (once, some minutes)" \
      env CARGO_PROFILE_RELEASE_OPT_LEVEL=$level CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false cargo install --quiet --locked --root target/tools "cargo-$1@$version"
  fi
}
