//! How long a plugin takes to become ready: started directly, in bubblewrap, and by Talon's own plugin
//! manager with and without a jail. One process starts them all with the same clock, so that only the method
//! of starting differs.

mod bare;
mod supervised;

use anyhow::Result;
use talon_tests::Scratch;

use self::bare::Launcher;
use self::supervised::{JailKind, TalonPlugins};
use crate::figures::Unit;
use crate::turns::{self, Measurement};

/// Without Talon a plugin is ready once it has returned its capabilities; with Talon once it takes calls,
/// which includes more.
pub(super) async fn serve(at_once: usize) -> Result<()> {
    let (case, metric, kinds) = match at_once {
        1 => ("start/one".to_owned(), "ready", &JailKind::ALL[..]),
        many => (format!("start/{many} at once"), "all ready", &[JailKind::Jailed("strict")][..]),
    };
    let scratch = Scratch::new();
    let ours = TalonPlugins::new(&scratch, kinds, at_once)?;
    let told = |contender: &str, took: std::time::Duration| {
        Measurement::new(&case, contender, metric, Unit::Milliseconds, took.as_secs_f64() * 1e3)
    };
    let served = turns::serve_turns(async || {
        let mut turn = Vec::new();
        for way in Launcher::on_this_machine() {
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
