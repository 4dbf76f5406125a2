use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn addresses(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("x:{number}")).collect()
}

// Promises: MCP-55
#[test]
fn a_renewal_keeps_its_resources_when_there_is_no_room_for_further_ones() {
    let (mut leases, until) = (Leases::default(), Instant::now() + Duration::from_secs(1));
    assert!(leases.set("a", &addresses(0..200), until).is_empty());
    let refused = leases.set("b", &addresses(100..300), until);
    assert_eq!(refused.len(), 300 - MAX_RESOURCES, "those that both follow count once");
    assert!(refused.values().all(|why| *why == LeaseError::Resources));
    assert_eq!(leases.wanted().len(), MAX_RESOURCES);
    // A new one of `a` has no room, whatever comes first.
    let refused = leases.set("a", &addresses((900..901).chain(0..200)), until);
    assert_eq!(refused.into_keys().collect::<Vec<_>>(), ["x:900"]);
    assert!(leases.set("b", &[], until).is_empty());
    assert_eq!(leases.wanted().len(), 200);
    assert!(leases.set("a", &addresses((900..901).chain(0..200)), until).is_empty());
}

// Promises: MCP-55
#[test]
fn subscribers_are_bounded_and_those_who_have_a_lease_renew_it() {
    let (mut leases, until) = (Leases::default(), Instant::now() + Duration::from_secs(1));
    for number in 0..MAX_SUBSCRIBERS {
        assert!(leases.set(&number.to_string(), &addresses([1]), until).is_empty());
    }
    assert_eq!(leases.set("one more", &addresses([1]), until)["x:1"], LeaseError::Subscribers);
    assert!(leases.set("7", &addresses([2]), until).is_empty());
    leases.drop_resources("8", &addresses([1]));
    assert!(leases.set("one more", &addresses([1]), until).is_empty(), "a lease on nothing takes no place");
}

proptest! {
    // Promises: MCP-55
    #[test]
    fn what_is_wanted_is_what_leases_that_run_hold(
        steps in prop::collection::vec((0_usize..5, prop::collection::btree_set(0_usize..8, 0..5), 0_u64..50), 1..60)
    ) {
        let (mut leases, begin) = (Leases::default(), Instant::now());
        let mut model: HashMap<usize, (BTreeSet<usize>, u64)> = HashMap::new();
        for (now, (subscriber, uris, seconds)) in (0_u64..).zip(steps) {
            let until = now + seconds;
            let at = |second: u64| begin + Duration::from_secs(second);
            let refused = leases.set(&subscriber.to_string(), &addresses(uris.iter().copied()), at(until));
            prop_assert!(refused.is_empty());
            model.insert(subscriber, (uris, until));
            leases.expire(at(now));
            model.retain(|_, (uris, until)| *until > now && !uris.is_empty());
            let wanted: BTreeSet<String> = addresses(model.values().flat_map(|(uris, _)| uris.iter().copied())).into_iter().collect();
            prop_assert_eq!(leases.wanted(), wanted);
            prop_assert_eq!(leases.next_end(), model.values().map(|(_, until)| at(*until)).min());
        }
    }
}
