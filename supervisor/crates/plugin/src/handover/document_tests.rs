use proptest::prelude::*;
use talon_control::fd_bundle::Packer;

use super::*;

/// Tickets as a parcel has them.
fn tickets(count: usize) -> Vec<FdIndex> {
    let mut packer = Packer::default();
    let null = || std::fs::File::open("/dev/null").unwrap().into();
    (0..count).map(|_| packer.add(null())).collect()
}

fn who() -> impl Strategy<Value = ProcessIdentity> {
    any::<(u32, u64, u32)>().prop_map(|(pid, started, uid)| ProcessIdentity { pid, started, uid })
}

prop_compose! {
    fn process()(
        names in ("[a-z0-9-]{1,8}", "[0-9a-f]{8}", "[0-9a-f]{8}", "[0-9a-f]{1,6}", "/[a-z/]{1,20}"),
        (program, monitor) in (who(), who()),
        (instance, starts, ready_since_unix_ms) in any::<(u32, u64, u64)>(),
        start_to_ready_us in any::<Option<u64>>(),
        parts in any::<[bool; 7]>(),
        text in any::<Option<String>>(),
    ) -> ProcessRecord {
        let tickets = tickets(10);
        let (plugin, fingerprint, digest, dir, path) = names;
        let optional = |part: usize, ticket: usize| parts[part].then(|| tickets[ticket]);
        ProcessRecord {
            plugin, instance, fingerprint, digest: digest.clone(), program,
            monitor: MonitorRecord { who: monitor, control: tickets[0], pidfd: tickets[1], program: tickets[2] },
            stdout: tickets[3], stderr: tickets[4],
            dir: DirRecord { name: dir.clone(), inside: optional(0, 5), listening: optional(1, 6) },
            view: parts[2].then_some(ViewRecord { name: dir, digest, script: text.clone(), gid: None }),
            group: parts[3].then(|| path.clone().into()),
            proxy: optional(4, 7), state: optional(5, 8), model: optional(5, 9),
            inside: parts[4].then(|| InnerSocketRecord { socket: tickets[7], target: text.clone() }).into_iter().collect(),
            identity: parts[6].then(|| IdentityRecord { certificate: "00".into(), key: "ff".into() }),
            handshake: Dialect::GoPlugin, dialect: Dialect::OpenTalonV0,
            address: AddressRecord::Unix(path.into()),
            server_cert: text,
            report: vec![],
            starts, ready_since_unix_ms, start_to_ready_us,
        }
    }
}

fn document(processes: Vec<ProcessRecord>) -> HandoverDocument {
    let tickets = tickets(2);
    HandoverDocument { processes, ..HandoverDocument::new(Path::new("/run/talon"), tickets[0], tickets[1]) }
}

proptest! {
    // Promises: HANDOVER-10
    #[test]
    fn what_is_written_is_read_as_it_was(processes in prop::collection::vec(process(), 0..4)) {
        let text = serde_json::to_vec(&document(processes.clone())).unwrap();
        let read: HandoverDocument = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(read.processes, processes);
    }

    // Promises: HANDOVER-10
    #[test]
    fn garbage_is_refused(process in process(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&document(vec![process])).unwrap();
        let cut = at.index(text.len());
        prop_assert!(serde_json::from_slice::<HandoverDocument>(&text[..cut]).is_err(), "a part is nothing");
        // Whatever it becomes, reading it ends, and it is read or refused.
        text[cut] = byte;
        let _ = serde_json::from_slice::<HandoverDocument>(&text);
    }

    #[test]
    fn any_text_can_be_looked_at(text in any::<String>()) {
        let _ = serde_json::from_str::<HandoverDocument>(&text);
    }
}

// Promises: HANDOVER-10
#[test]
fn another_version_is_refused_by_name() {
    let mut value = serde_json::to_value(document(vec![])).unwrap();
    value["version"] = 2.into();
    let refused = serde_json::from_value::<HandoverDocument>(value).unwrap_err().to_string();
    assert!(refused.contains("of version 2, and this supervisor reads version 1"), "{refused}");
}

#[test]
fn a_newer_supervisor_may_say_more() {
    let mut value = serde_json::to_value(document(vec![])).unwrap();
    value["mood"] = "good".into();
    assert!(serde_json::from_value::<HandoverDocument>(value).is_ok());
}

// Promises: HANDOVER-10
#[test]
fn more_processes_than_there_may_be_are_refused() {
    let mut value = serde_json::to_value(document(vec![])).unwrap();
    let one = serde_json::json!({});
    value["processes"] = vec![one; MAX_PROCESSES + 1].into();
    assert!(serde_json::from_value::<HandoverDocument>(value).is_err());
}
