//! Scopes and roles.

use std::fmt;

/// What a credential permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Its own sessions.
    Chat,
    /// To decide approvals.
    Approve,
    /// To speak for the senders of one channel.
    Channel,
    /// What the role operate may, under the gateway's ceiling.
    Operate,
    /// What the role admin may, under the gateway's ceiling.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Approve, Self::Channel, Self::Operate, Self::Admin];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Channel => "channel",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// The scope of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Some scopes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether a scope is among them. `admin` includes `operate`; no other includes another.
    #[must_use]
    pub fn contain(self, scope: Scope) -> bool {
        self.has(scope) || (scope == Scope::Operate && self.has(Scope::Admin))
    }

    fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The role that goes with them.
    #[must_use]
    pub fn role(self) -> Role {
        if self.has(Scope::Admin) {
            Role::Admin
        } else if self.has(Scope::Operate) {
            Role::Operate
        } else {
            Role::Call
        }
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope)).map(Scope::as_str)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | (1 << scope as u8)))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A role at host and agent. A higher one includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Its own sessions and calls.
    Call,
    /// Everybody's sessions; plugins.
    Operate,
    /// Configuration and tokens.
    Admin,
}

impl Role {
    /// Its name, as host and agent write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Call, Self::Operate, Self::Admin].into_iter().find(|role| role.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_includes_operate_and_nothing_else_includes_anything() {
        for one in Scope::ALL {
            let scopes: Scopes = [one].into_iter().collect();
            for other in Scope::ALL {
                let included = one == other || (one == Scope::Admin && other == Scope::Operate);
                assert_eq!(scopes.contain(other), included, "{one:?} {other:?}");
            }
            assert_eq!(Scope::parse(one.as_str()), Some(one));
        }
        assert_eq!(Scopes::default().role(), Role::Call);
        assert_eq!(Scopes::from_iter([Scope::Operate, Scope::Admin]).role(), Role::Admin);
    }
}
