use super::*;
use crate::network::{LoopbackListeners, Network};
use crate::profile::CompiledProfile;
use crate::view::{BindMount, GeneratedFile, PrivateTmpfs, View};

const ABIS: [ABI; 8] = [ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, ABI::V7, ABI::V8, ABI::V9];

fn isolation() -> Isolation {
    let shown =
        |at: &str, from: &str, access| BindMount { at: at.into(), from: from.into(), access, needed: true };
    let view = View {
        shown: vec![shown("/usr", "/usr", Access::Execute), shown("/state", "/var/x", Access::Write)],
        files: vec![GeneratedFile { at: "/etc/passwd".into(), text: String::new() }],
        program_at: Some("/plugin/run".into()),
        private: PrivateTmpfs { exec: true, ..PrivateTmpfs::default() },
        ..View::default()
    };
    Isolation {
        view,
        network: Network::None,
        listeners: LoopbackListeners::default(),
        profile: CompiledProfile::default(),
    }
}

#[test]
fn without_a_private_root_nothing_of_the_hosts_is_taken_for_what_it_would_have_replaced() {
    let isolation = isolation();
    let paths = |private_root| -> Vec<_> {
        grants(&isolation, private_root).iter().map(|grant| grant.path.to_str().unwrap()).collect()
    };
    let (inside, outside) = (paths(true), paths(false));
    for path in ["/state", "/tmp", "/dev/shm", "/etc/passwd", "/plugin/run"] {
        assert!(inside.contains(&path) && !outside.contains(&path), "{path}");
    }
    assert!(outside.contains(&"/var/x") && !inside.contains(&"/var/x"));
    for path in ["/usr", "/proc", "/dev/null", "/run/plugin"] {
        assert!(inside.contains(&path) && outside.contains(&path), "{path}");
    }
}

#[test]
fn rights_are_what_their_names_say() {
    for abi in ABIS {
        for kind in [FileType::Directory, FileType::RegularFile, FileType::Socket, FileType::CharacterDevice]
        {
            let rights = |allowed| rights(allowed, abi, kind);
            for allowed in [Allowed::Read, Allowed::Write, Allowed::Device] {
                assert!(!rights(allowed).contains(AccessFs::Execute), "{allowed:?}");
            }
            for allowed in [Allowed::Read, Allowed::Execute] {
                assert!(!rights(allowed).intersects(AccessFs::from_write(abi)), "{allowed:?}");
            }
            for allowed in [Allowed::Write, Allowed::WriteAndExecute] {
                assert!(rights(allowed).contains(AccessFs::ReadFile | AccessFs::WriteFile));
                assert!(!rights(allowed).intersects(AccessFs::MakeChar | AccessFs::MakeBlock));
            }
            assert!(!rights(Allowed::Device).contains(AccessFs::IoctlDev));
            let commands = kind == FileType::CharacterDevice && abi >= ABI::V5;
            assert_eq!(rights(Allowed::Write).contains(AccessFs::IoctlDev), commands);
            // The kernel refuses a rule that says too much.
            let most =
                if kind == FileType::Directory { AccessFs::from_all(abi) } else { AccessFs::from_file(abi) };
            assert!(most.contains(rights(Allowed::WriteAndExecute)));
        }
    }
}
