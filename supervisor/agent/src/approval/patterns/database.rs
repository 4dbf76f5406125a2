//! Statements that take away more than some rows.

use super::built_in_pattern::BuiltInPattern;

/// The name of a table, as it may be quoted.
macro_rules! table {
    () => {
        r#"(?:only\s+)?[\w$."`\[\]]+(?:\s+(?:as\s+)?\w+)?"#
    };
}

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "DROP",
        concat!(
            r"(?i)\bdrop\s+(?:(?:temporary|foreign|materialized|unique)\s+)*(?:table|database|schema|view|index|sequence|",
            r"function|procedure|trigger|user|role|type|tablespace|extension|collection|keyspace|column|constraint)\b"
        ),
        &[
            "DROP TABLE users",
            "drop\n  database if exists x",
            "psql -c 'ALTER TABLE t DROP COLUMN c'",
            "DROP/**/TABLE t",
            "drop materialized view v;",
        ],
        &["drop the table at the door", "dropped tables"],
    ),
    BuiltInPattern::new(
        "dropdb",
        concat!(r"(?i)(?:", r"(?:^|[^\w.-])drop(?:db|user)\s|\bdropDatabase\s*\(|\bflush(?:all|db)\b)"),
        &["sudo -u postgres dropdb x", "db.dropDatabase()", "redis-cli FLUSHALL"],
        &["createdb x"],
    ),
    BuiltInPattern::new(
        "TRUNCATE",
        concat!(
            r"(?im)\btruncate\s+table\b|(?-i:\bTRUNCATE\s+[\w.])|",
            r#"(?:^|[;"'(])\s*truncate\s+"#,
            table!(),
            r#"\s*(?:[;,"')]|$|\b(?:cascade|restart|continue)\b)"#
        ),
        &[
            "TRUNCATE users",
            "truncate table a, b",
            "psql -c \"truncate users cascade\"",
            "select 1; truncate t",
        ],
        &["truncate long lines of the text in the middle", "it is truncated"],
    ),
    BuiltInPattern {
        name: "DELETE without WHERE",
        expression: concat!(
            r"(?im)\bdelete\s+from\s+",
            table!(),
            r#"\s*(?:[;)"']|$|\b(?:returning|using|order|limit)\b)"#
        ),
        unless: Some(r"(?i)\bwhere\b"),
        finds: &[
            "DELETE FROM users",
            "delete from only public.users;",
            "psql -c \"DELETE FROM \\\"users\\\"\"",
            "DELETE\nFROM users u\nRETURNING *",
            "delete from users -- where id = 1",
            "delete from a using b; select 1 where true",
            r#"{"sql": "DELETE FROM `users` LIMIT 10"}"#,
        ],
        leaves: &[
            "DELETE FROM users WHERE id = 1",
            "delete from users\nwhere id = 1",
            "DELETE FROM a USING b WHERE a.id = b.id",
            "please delete from the list what is old",
        ],
    },
    BuiltInPattern::new(
        "DELETE WHERE true",
        r#"(?i)\bdelete\s+from\s[^;]*\bwhere\s+\(?\s*(?:true|1\s*=\s*1|'1'\s*=\s*'1'|1)\s*\)?\s*(?:[;"']|$)"#,
        &["DELETE FROM users WHERE 1=1", "delete from users where true;"],
        &["DELETE FROM users WHERE id = 1 AND a = 1", "delete from users where 1 < id"],
    ),
    BuiltInPattern {
        name: "UPDATE without WHERE",
        expression: concat!(r"(?im)\bupdate\s+", table!(), r#"\s+set\s+[\w$."`\[\]]+\s*=[^;]*"#),
        unless: Some(r"(?i)\bwhere\b"),
        finds: &["UPDATE users SET admin = true", "update users u set a = 1, b = 2;"],
        leaves: &["UPDATE users SET admin = true WHERE id = 1", "update the set of rules"],
    },
];
