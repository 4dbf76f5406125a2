//! Who speaks in a text.

/// Who speaks, in a line such as `User: …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Human,
    Assistant,
    System,
    User,
    /// A model by another name: `Bot:`, `GPT:`. It counts only beside a person who asks it.
    Bot,
}

/// How many roles there are.
const ROLES: usize = 5;

/// The roles that a text names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoleSet([bool; ROLES]);

impl RoleSet {
    pub(crate) fn add(&mut self, role: Role) {
        self.0[role as usize] = true;
    }

    /// The roles of both sets.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|role| self.0[role] || other.0[role]))
    }

    /// Whether at least two roles speak, not counting everyday names.
    pub(crate) fn has_dialogue(self) -> bool {
        self.0[..Role::Bot as usize].iter().filter(|&&seen| seen).count() > 1
    }

    /// Whether a person asks and a model answers, in either set.
    pub(crate) fn has_question_and_answer(self, there: Self) -> bool {
        let is = |role: Role| self.0[role as usize] || there.0[role as usize];
        (is(Role::Human) || is(Role::User)) && (is(Role::Assistant) || is(Role::Bot))
    }
}
