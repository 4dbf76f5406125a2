//! How long a plugin takes to become ready: started directly, in bubblewrap, and by Talon's own plugin manager with and
//! without a jail. One process starts them all with the same clock, so that only the method of starting differs.

mod bare;
mod ours;

use anyhow::Result;
use talon_tests::Scratch;

use self::bare::Way;
use self::ours::{Kind, Ours};
use crate::book::Unit;
use crate::turns::{self, Told};

/// Without Talon a plugin is ready once it has returned its capabilities; with Talon once it takes calls, which
/// includes more.
pub(super) async fn serve(at_once: usize) -> Result<()> {
    let (case, metric, kinds) = match at_once {
        1 => ("start/one".to_owned(), "ready", &Kind::ALL[..]),
        many => (format!("start/{many} at once"), "all ready", &[Kind::Jailed("strict")][..]),
    };
    let scratch = Scratch::new();
    let ours = Ours::new(&scratch, kinds, at_once)?;
    let told = |contender: &str, took: std::time::Duration| {
        Told::new(&case, contender, metric, Unit::Milliseconds, took.as_secs_f64() * 1e3)
    };
    let served = turns::take(async || {
        let mut turn = Vec::new();
        for way in Way::on_this_machine() {
            turn.push(told(way.name(), bare::start(*way, &scratch, at_once).await?));
        }
        for kind in kinds {
            turn.push(told(&kind.name(), ours.start(*kind).await?));
        }
        Ok(turn)
    })
    .await;
    ours.end().await;
    served
}
