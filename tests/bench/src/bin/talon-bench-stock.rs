//! The contenders that Talon is compared with, one process each: see [`talon_bench::stock`].

use clap::Parser;
use talon_bench::stock::Part;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

fn main() -> anyhow::Result<()> {
    Arguments::parse().part.run()
}
