//! The elements of a profile: groups of calls, and conditions on their arguments.

use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use crate::network::Network;

/// What happens to a call that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DefaultAction {
    /// EPERM.
    #[default]
    Errno,
    /// The process is killed.
    Kill,
}

/// Calls with one common reason.
#[derive(Debug, Clone)]
pub(super) struct CallGroup {
    pub(super) why: String,
    /// Names as in the tables of system calls.
    pub(super) calls: Vec<&'static str>,
    pub(super) verdict: GroupAction,
    /// All of these must hold. None: always.
    pub(super) when: Vec<Condition>,
    /// The networks that it applies to. None: all.
    pub(super) networks: Vec<NetworkKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupAction {
    Allow,
    /// Fails with this number; `None` is the profile's default.
    Answer(Option<i32>),
}

/// A kind of network, without its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NetworkKind {
    None,
    Loopback,
    /// The host's, with or without a list of ports.
    Host,
    /// The host's, with a list of ports.
    Ports,
}

impl CallGroup {
    pub(super) fn matches(&self, network: &Network) -> bool {
        let applies = |kind: &NetworkKind| match kind {
            NetworkKind::None => *network == Network::None,
            NetworkKind::Loopback => *network == Network::Loopback,
            NetworkKind::Host => matches!(network, Network::Host { .. }),
            NetworkKind::Ports => network.lists_ports(),
        };
        self.networks.is_empty() || self.networks.iter().any(applies)
    }
}

/// A condition on one argument.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// From 0 to 5.
    pub(super) arg: u8,
    /// Whether all 64 bits count, as for pointers; otherwise the low 32 do.
    pub(super) wide: bool,
    pub(super) test: ArgumentTest,
}

#[derive(Debug, Clone)]
pub(super) enum ArgumentTest {
    /// One of these, in the bits of the mask.
    Is { mask: u32, values: Vec<u32> },
    /// None of these.
    IsNot(Vec<u32>),
    /// At least one of these bits is set.
    AnyBit(u32),
}

impl Condition {
    /// How many alternatives it expands to.
    pub(super) fn alternative_count(&self) -> usize {
        match &self.test {
            ArgumentTest::Is { values, .. } => values.len(),
            ArgumentTest::IsNot(_) => 1,
            ArgumentTest::AnyBit(bits) => bits.count_ones() as usize,
        }
    }

    /// Each alternative as conditions that must hold together.
    fn conditions(&self) -> Result<Vec<Vec<SeccompCondition>>, BackendError> {
        // Nearly all arguments that are worth a condition are 32 bits wide in the kernel, which ignores the
        // rest. If more were compared, a program could bypass a refusal by setting ignored bits.
        let width = || if self.wide { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
        let one = |operator, value: u32| SeccompCondition::new(self.arg, width(), operator, value.into());
        match &self.test {
            ArgumentTest::Is { mask: u32::MAX, values } => {
                values.iter().map(|value| Ok(vec![one(SeccompCmpOp::Eq, *value)?])).collect()
            }
            ArgumentTest::Is { mask, values } => {
                let operator = || SeccompCmpOp::MaskedEq((*mask).into());
                values.iter().map(|value| Ok(vec![one(operator(), *value)?])).collect()
            }
            ArgumentTest::IsNot(values) => {
                let all: Result<_, _> = values.iter().map(|value| one(SeccompCmpOp::Ne, *value)).collect();
                Ok(vec![all?])
            }
            ArgumentTest::AnyBit(bits) => (0..u32::BITS)
                .map(|place| 1_u32 << place)
                .filter(|bit| bits & bit != 0)
                .map(|bit| Ok(vec![one(SeccompCmpOp::MaskedEq(bit.into()), bit)?]))
                .collect(),
        }
    }
}

/// The rules that are equivalent to the conditions: one that holds is enough. None if there are no
/// conditions.
pub(super) fn rules(when: &[Condition]) -> Result<Vec<SeccompRule>, BackendError> {
    if when.is_empty() {
        return Ok(Vec::new());
    }
    let mut all: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for condition in when {
        let alternatives = condition.conditions()?;
        all = all
            .iter()
            .flat_map(|before| alternatives.iter().map(|more| [before.as_slice(), more.as_slice()].concat()))
            .collect();
    }
    all.into_iter().map(SeccompRule::new).collect()
}
