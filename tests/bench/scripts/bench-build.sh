# Sourced by the benchmark scripts: builds the programs that talon-bench starts, optimised, and nothing else of the workspace.
tests/scripts/progress.sh "Building optimised programs" cargo build --release --locked --bins \
  -p talon -p talon-state -p talon-agent -p talon-gateway -p talon-watch -p talon-mcp -p talon-mcp-bridge -p talon-lua -p talon-bench -p misbehave
