//! Talon's own contenders, one process each: see [`talon_bench::guarded`].

use clap::Parser;
use talon_bench::guarded::Part;

/// The same allocator as the supervisor's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

fn main() -> anyhow::Result<()> {
    // The plugins it starts are jailed as the supervisor's are.
    talon_jail::become_stage_if_asked();
    Arguments::parse().part.run()
}
