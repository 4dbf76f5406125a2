//! Versions of the schema. They only go forward: a released migration is never changed.

/// The step from one version to the next.
#[derive(Debug)]
pub(crate) struct Migration {
    /// The version it leads to.
    pub(crate) version: u32,
    /// What it does, in SQL of its engine.
    pub(crate) sql: &'static str,
}

/// Lists the migrations of an engine from their files, numbered from 1 without a gap.
macro_rules! migrations {
    ($($version:literal => $file:literal),+ $(,)?) => {
        &[$(crate::migrate::Migration { version: $version, sql: include_str!($file) }),+]
    };
}
pub(crate) use migrations;

/// The version that the last migration leads to.
pub(crate) fn latest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |last| last.version)
}

/// The migrations that a database of this version lacks; `None` if it is newer than this program.
pub(crate) fn missing(migrations: &'static [Migration], found: u32) -> Option<&'static [Migration]> {
    migrations.get(usize::try_from(found).ok()?..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_the_same_versions_without_a_gap() {
        let engines = [crate::sqlite::MIGRATIONS, crate::postgres::MIGRATIONS];
        for migrations in engines {
            assert!(migrations.iter().zip(1..).all(|(migration, version)| migration.version == version));
            assert!(
                migrations
                    .iter()
                    .all(|migration| ["CREATE", "ALTER"].iter().any(|word| migration.sql.contains(word)))
            );
        }
        assert_eq!(latest(engines[0]), latest(engines[1]));
    }

    #[test]
    fn what_is_missing_is_what_comes_after() {
        let all = crate::sqlite::MIGRATIONS;
        assert_eq!(missing(all, 0).map(<[_]>::len), Some(all.len()));
        assert_eq!(missing(all, latest(all)).map(<[_]>::len), Some(0));
        assert!(missing(all, latest(all) + 1).is_none());
    }
}
