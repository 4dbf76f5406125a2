//! System calls by name and number, for the supported architectures.

use std::str::FromStr as _;

use seccompiler::TargetArch;
use syscalls::{aarch64, x86_64};

use super::error::ProfileError;

/// An architecture that filters can be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// The architecture that this program was built for.
    pub(super) fn native(profile: &str) -> Result<Self, ProfileError> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            other => Err(ProfileError::invalid(
                profile,
                format!(
                    "no filters are made for {other} (use x86_64 or aarch64, or sandbox.mode: best-effort)"
                ),
            )),
        }
    }

    /// The number of a call, if this architecture has it.
    pub(super) fn number(self, name: &str) -> Option<u32> {
        let number = match self {
            Self::X86_64 => x86_64::Sysno::from_str(name).ok()?.id(),
            Self::Aarch64 => aarch64::Sysno::from_str(name).ok()?.id(),
        };
        u32::try_from(number).ok()
    }

    /// The name of a call.
    pub(super) fn name(self, number: u32) -> Option<&'static str> {
        let number = usize::try_from(number).ok()?;
        match self {
            Self::X86_64 => x86_64::Sysno::new(number).map(|call| call.name()),
            Self::Aarch64 => aarch64::Sysno::new(number).map(|call| call.name()),
        }
    }

    /// The highest number that has a name in this build.
    pub(super) fn highest_number(self) -> u32 {
        let last = match self {
            Self::X86_64 => x86_64::Sysno::last().id(),
            Self::Aarch64 => aarch64::Sysno::last().id(),
        };
        last.unsigned_abs()
    }

    pub(super) fn target(self) -> TargetArch {
        match self {
            Self::X86_64 => TargetArch::x86_64,
            Self::Aarch64 => TargetArch::aarch64,
        }
    }

    /// The value of `seccomp_data.arch`: ELF number, 64 bit, little endian (audit.h).
    pub(super) fn audit(self) -> u32 {
        const WIDE_LITTLE: u32 = 0xc000_0000;
        match self {
            Self::X86_64 => WIDE_LITTLE | 62,
            Self::Aarch64 => WIDE_LITTLE | 183,
        }
    }
}

/// The name as in the tables, if any architecture has such a call.
pub(super) fn known_name(name: &str) -> Option<&'static str> {
    let here = x86_64::Sysno::from_str(name).ok().map(|call| call.name());
    here.or_else(|| aarch64::Sysno::from_str(name).ok().map(|call| call.name()))
}

/// The longest name that is compared with the known ones, of which the longest has 23 characters. The
/// comparison is quadratic in the length.
const MAX_COMPARED_CHARS: usize = 40;

/// The known name that was probably meant: at most one edit in three characters.
pub(super) fn nearest_name(name: &str) -> Option<&'static str> {
    let length = name.chars().count();
    if length > MAX_COMPARED_CHARS {
        return None;
    }
    let names =
        x86_64::Sysno::iter().map(|call| call.name()).chain(aarch64::Sysno::iter().map(|call| call.name()));
    let near = names.map(|known| (strsim::osa_distance(name, known), known));
    near.filter(|(distance, _)| *distance <= (length / 3).max(1)).min().map(|(_, known)| known)
}
