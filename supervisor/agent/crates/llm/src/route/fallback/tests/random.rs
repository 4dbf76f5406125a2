//! Whatever fails in whatever order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;

use super::provider::Fault;
use super::setting::{Setting, TODAY};
use crate::route::Money;
use crate::route::cost::Budget;
use crate::route::fallback::{AnswerEvent, ChainSettings, ExhaustedReason, MAX_ATTEMPTS};

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::None),
        Just(Fault::Uncounted),
        (1_u32..4, 1_u64..100).prop_map(|(times, seconds)| Fault::Slow(times, seconds)),
        Just(Fault::DeadNetwork),
        Just(Fault::Hang),
        Just(Fault::HangsMidway),
        Just(Fault::BreaksOff),
        prop::option::of(0_u64..200).prop_map(Fault::RateLimited),
        Just(Fault::NoCredit),
        Just(Fault::WrongKey),
        Just(Fault::TooLong),
        Just(Fault::BadRequest),
        Just(Fault::BrokenServer),
        (0_u64..200).prop_map(Fault::Unreachable),
    ]
}

fn script() -> impl Strategy<Value = Vec<Fault>> {
    prop::collection::vec(fault(), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every request ends within its patience, with an answer or with all that was tried; what was heard is
    /// the answer or was taken back; costs add up, and nothing stays set aside.
    #[test]
    fn every_request_ends_and_everything_adds_up(
        first in script(), second in script(), third in script(), pauses in prop::collection::vec(0_u64..200, 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let limit: Money = "100".parse().expect("an amount");
            let budget = Budget { per_session: Some(limit), per_day: Some(limit) };
            let settings = ChainSettings::default();
            let setting = Setting::with(first, second, third, settings, budget);
            let mut spent = Money::ZERO;
            for pause in pauses {
                tokio::time::advance(Duration::from_secs(pause)).await;
                for probe in setting.chain.due_probes(tokio::time::Instant::now()) {
                    probe.run().await;
                }
                let mut kept = 0;
                let mut listener = |heard: AnswerEvent| match heard {
                    AnswerEvent::Piece(_) => kept += 1,
                    AnswerEvent::Withdrawn { .. } => kept = 0,
                    AnswerEvent::Waiting { .. } => {}
                };
                let asked = setting.chain.ask(&setting.question(), &mut listener).await;
                let (attempts, took) = match &asked {
                    Ok(answered) => (&answered.attempts, answered.total_latency_ms),
                    Err(error) => (&error.attempts, error.total_latency_ms),
                };
                prop_assert!(attempts.len() <= MAX_ATTEMPTS);
                prop_assert!(Duration::from_millis(took) <= settings.patience);
                let successes = attempts.iter().filter(|attempt| attempt.success).count();
                prop_assert_eq!(successes, usize::from(asked.is_ok()));
                prop_assert_eq!(attempts.last().is_some_and(|last| last.success), asked.is_ok());
                prop_assert_eq!(kept > 0, asked.is_ok());
                if let Err(error) = &asked {
                    prop_assert!(!matches!(error.reason, ExhaustedReason::OverBudget(_) | ExhaustedReason::CannotWithdraw(_)));
                    prop_assert!(!error.to_string().is_empty());
                }
                spent = spent.plus(attempts.iter().map(|attempt| attempt.cost).sum());
            }
            let ledger = setting.chain.ledgers().lock().clone();
            prop_assert_eq!(ledger.total().cost, spent);
            prop_assert_eq!(ledger.left(&budget, "s", TODAY), Some(limit.less(spent)));
            let under_way = [&setting.first, &setting.second, &setting.third]
                .map(|provider| provider.under_way.load(Ordering::Relaxed));
            prop_assert_eq!(under_way, [0, 0, 0]);
            Ok(())
        })?;
    }
}
