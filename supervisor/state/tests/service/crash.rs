//! What was acknowledged over the socket is there after SIGKILL, and no half of anything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::plugin::{get, set};
use crate::support::{Place, Plugin, Service};

const ROUNDS: u64 = 12;
const WRITERS: u32 = 8;
/// Every value is this long and all of one byte, so that a half of one is seen.
const VALUE_BYTES: usize = 20_000;
/// In the middle of how many acknowledgements the program is killed; each round in that of another number.
const ACKNOWLEDGED: u32 = 40;

fn value(number: u32) -> Vec<u8> {
    vec![number.to_le_bytes()[0]; VALUE_BYTES]
}

async fn write(mut plugin: Plugin, round: u64, writer: u32, all: Arc<AtomicU32>) -> (u32, u32) {
    let mut number = 0;
    while set(&mut plugin, &format!("{round}-{writer}-{number}"), &value(number)).await.is_ok() {
        number += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    (writer, number)
}

// Promises: STATE-1
#[tokio::test]
async fn acknowledged_writes_survive_the_kill_of_the_service() {
    let place = Place::new();
    for round in 0..ROUNDS {
        let mut service = Service::at(&place).await;
        let plugin = service.plugin(&place, 2 * round, "hello").await;
        let all = Arc::new(AtomicU32::new(0));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(plugin.clone(), round, writer, Arc::clone(&all)));
        }
        let enough = ACKNOWLEDGED + u32::try_from(round).unwrap() * 3;
        while all.load(Ordering::Relaxed) < enough {
            tokio::task::yield_now().await;
        }
        service.child.kill().unwrap();
        service.ended();
        let service = Service::at(&place).await;
        let mut plugin = service.plugin(&place, 2 * round + 1, "hello").await;
        while let Some(written) = writers.join_next().await {
            let (writer, acknowledged) = written.unwrap();
            for number in 0..acknowledged {
                let found = get(&mut plugin, &format!("{round}-{writer}-{number}")).await.unwrap();
                assert!(found == Some(value(number)), "{round}-{writer}-{number} was acknowledged");
            }
            // The one that was not may be there, but then whole.
            let last = get(&mut plugin, &format!("{round}-{writer}-{acknowledged}")).await.unwrap();
            assert!(last.is_none_or(|last| last == value(acknowledged)));
        }
    }
}
