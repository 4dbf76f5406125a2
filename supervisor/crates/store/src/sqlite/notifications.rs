//! The outbox in SQLite. Leases are by this machine's clock.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use crate::error::Error;
use crate::limits::{MAX_BATCH, count, name};
use crate::notification::{
    FoldedNotifications, GroupKey, NewNotification, Notification, NotificationBatch, NotificationChange,
    NotificationClaim, NotificationColumns, NotificationCounts, NotificationEnd, NotificationFilter,
    NotificationHandle, NotificationState, Outbox, Remainder, check_batch, check_import, check_new,
    check_reason, mark_of, page_end, page_start, without_sender,
};
use crate::page::{Page, PageBuilder, PageRequest};
use crate::time::Timestamp;

/// The columns that [`notification`] reads.
macro_rules! notifications {
    () => {
        "SELECT id, event, entry, group_key, severity, payload, count, revision, state, attempt, due_at, next_at,
            closes_at, holder, epoch, lease_until, created_at, ended_at, note FROM notifications"
    };
}
/// Which ones may be claimed at ?2.
macro_rules! may_be_claimed {
    () => {
        "(state = 'waiting' AND next_at <= ?2 OR state = 'sending' AND lease_until <= ?2)"
    };
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn latest(&self, groups: &[GroupKey]) -> Result<Vec<Notification>, Error> {
        count("groups of events", groups.len(), MAX_BATCH)?;
        let groups = groups.to_vec();
        self.read(move |db| groups.iter().filter_map(|key| latest(db, key).transpose()).collect()).await
    }

    async fn known_events(&self, events: &[(String, String)]) -> Result<Vec<(String, String)>, Error> {
        count("events", events.len(), MAX_BATCH)?;
        let events = events.to_vec();
        self.read(move |db| {
            let mut known =
                db.prepare_cached("SELECT 1 FROM notifications WHERE event = ?1 AND entry = ?2")?;
            let mut found = Vec::new();
            for (event, entry) in events {
                if known.exists([&event, &entry])? {
                    found.push((event, entry));
                }
            }
            Ok(found)
        })
        .await
    }

    async fn write(&self, batch: NotificationBatch) -> Result<bool, Error> {
        check_batch(&batch)?;
        self.write(move |db| {
            if let Some((source, from, _)) = &batch.cursor
                && cursor(db, source)? != *from
            {
                return Ok(false);
            }
            for (key, seen) in &batch.groups {
                if latest(db, key)?.map(|found| found.seen()) != *seen {
                    return Ok(false);
                }
            }
            for change in &batch.changes {
                match change {
                    NotificationChange::New(new) => insert(db, new)?,
                    NotificationChange::Extend { id, more, payload, severity } => {
                        db.prepare_cached(
                            "UPDATE notifications SET count = count + ?2, payload = coalesce(?3, payload),
                                severity = ?4, revision = revision + 1 WHERE id = ?1",
                        )?
                        .execute(params![id, signed(*more), payload, severity])?;
                    }
                }
            }
            if let Some((source, _, to)) = &batch.cursor {
                db.prepare_cached(
                    "INSERT INTO notification_cursors (source, number) VALUES (?1, ?2)
                    ON CONFLICT (source) DO UPDATE SET number = excluded.number",
                )?
                .execute(params![source, signed(*to)])?;
            }
            Ok(true)
        })
        .await
    }

    async fn cursor(&self, source: &str) -> Result<u64, Error> {
        let source = source.to_owned();
        self.read(move |db| cursor(db, &source)).await
    }

    async fn fold(&self, limit: u32, stand_in: NewNotification) -> Result<FoldedNotifications, Error> {
        check_new(&stand_in)?;
        self.write(move |db| {
            let GroupKey { entry, group } = &stand_in.key;
            let waiting: i64 = db
                .prepare_cached(
                    "SELECT count(*) FROM notifications
                    WHERE entry = ?1 AND state IN ('waiting', 'sending') AND state = 'waiting' AND group_key <> ?2",
                )?
                .query_row(params![entry, group], |row| row.get(0))?;
            let limit = i64::from(limit);
            if waiting <= limit {
                return Ok(FoldedNotifications::default());
            }
            let mut delete = db.prepare_cached(
                "DELETE FROM notifications WHERE id IN (
                    SELECT id FROM notifications
                    WHERE entry = ?1 AND state IN ('waiting', 'sending') AND state = 'waiting' AND group_key <> ?2
                    ORDER BY CASE severity WHEN 'info' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, id LIMIT ?3)
                RETURNING count",
            )?;
            let gone = delete
                .query_map(params![entry, group, waiting - limit + limit / 10], |row| row.get::<_, i64>(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            let folded = FoldedNotifications {
                notifications: gone.len() as u64,
                events: gone.into_iter().map(i64::unsigned_abs).sum(),
            };
            let extended = db
                .prepare_cached(
                    "UPDATE notifications SET count = count + ?3, revision = revision + 1
                    WHERE entry = ?1 AND group_key = ?2 AND state = 'waiting'",
                )?
                .execute(params![entry, group, signed(folded.events)])?;
            if extended == 0 {
                insert(db, &NewNotification { count: folded.events, ..stand_in.clone() })?;
            }
            Ok(folded)
        })
        .await
    }

    async fn due(&self, entry: &str, now: Timestamp, limit: u32) -> Result<Vec<Notification>, Error> {
        let entry = entry.to_owned();
        self.read(move |db| {
            let sql = concat!(
                notifications!(),
                " WHERE entry = ?1 AND state IN ('waiting', 'sending') AND ",
                may_be_claimed!(),
                " ORDER BY next_at, id LIMIT ?3"
            );
            all(db, sql, params![entry, now.as_millis(), limit])
        })
        .await
    }

    async fn next_due(&self, entry: &str, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let entry = entry.to_owned();
        self.read(move |db| {
            let next: Option<i64> = db
                .prepare_cached(
                    "SELECT min(CASE state WHEN 'waiting' THEN next_at ELSE lease_until END) FROM notifications
                    WHERE entry = ?1 AND state IN ('waiting', 'sending')
                        AND CASE state WHEN 'waiting' THEN next_at ELSE lease_until END > ?2",
                )?
                .query_row(params![entry, now.as_millis()], |row| row.get(0))?;
            Ok(next.map(Timestamp::from_millis))
        })
        .await
    }

    async fn claim(&self, claim: NotificationClaim) -> Result<Option<Notification>, Error> {
        name("a holder", &claim.holder)?;
        self.write(move |db| {
            let now = claim.now.as_millis();
            let lease = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX);
            let sql = concat!(
                "UPDATE notifications SET state = 'sending', attempt = attempt + 1, holder = ?3, epoch = epoch + 1,
                    lease_until = ?4, revision = revision + 1 WHERE id = ?1 AND ",
                may_be_claimed!()
            );
            let until = now.saturating_add(lease);
            let claimed = db.prepare_cached(sql)?.execute(params![claim.id, now, claim.holder, until])?;
            if claimed == 0 { Ok(None) } else { find(db, &claim.id) }
        })
        .await
    }

    async fn end(
        &self,
        handle: &NotificationHandle,
        end: NotificationEnd,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let handle = handle.clone();
        let (state, next, note) = match end {
            NotificationEnd::Delivered => (NotificationState::Delivered, None, String::new()),
            NotificationEnd::Refused(note) => (NotificationState::Refused, None, note),
            NotificationEnd::GivenUp(note) => (NotificationState::GivenUp, None, note),
            NotificationEnd::Retry { note, at } => (NotificationState::Waiting, Some(at.as_millis()), note),
            NotificationEnd::Released => (NotificationState::Waiting, Some(now.as_millis()), String::new()),
        };
        check_reason(&note)?;
        self.write(move |db| {
            let ended = state.is_finished().then_some(now.as_millis());
            let sql = "UPDATE notifications SET state = ?3, next_at = coalesce(?4, next_at), ended_at = ?5, note = ?6,
                    lease_until = 0, revision = revision + 1
                WHERE id = ?1 AND epoch = ?2 AND state = 'sending'";
            let values = params![handle.id, signed(handle.epoch), state.word(), next, ended, note];
            Ok(db.prepare_cached(sql)?.execute(values)? > 0)
        })
        .await
    }

    async fn expire_leases(&self) -> Result<(), Error> {
        self.write(|db| {
            db.prepare_cached("UPDATE notifications SET lease_until = 0 WHERE state = 'sending'")?
                .execute([])?;
            Ok(())
        })
        .await
    }

    async fn retry(&self, id: Option<&str>, now: Timestamp) -> Result<u64, Error> {
        let id = id.map(str::to_owned);
        self.write(move |db| {
            let sql = "UPDATE notifications SET due_at = CASE state WHEN 'waiting' THEN due_at ELSE ?2 END,
                    state = 'waiting', next_at = ?2, ended_at = NULL, revision = revision + 1
                WHERE (?1 IS NULL OR id = ?1)
                    AND (state IN ('refused', 'given_up') OR state = 'waiting' AND attempt > 0)";
            Ok(db.prepare_cached(sql)?.execute(params![id, now.as_millis()])? as u64)
        })
        .await
    }

    async fn get(&self, id: &str) -> Result<Option<Notification>, Error> {
        let id = id.to_owned();
        self.read(move |db| find(db, &id)).await
    }

    async fn list(
        &self,
        filter: &NotificationFilter,
        page: &PageRequest,
    ) -> Result<Page<Notification>, Error> {
        let (filter, page) = (filter.clone(), page.clone());
        let before = page_start(&page)?;
        self.read(move |db| {
            let mut rows = db.prepare_cached(concat!(
                notifications!(),
                " WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR entry = ?2) AND (?3 IS NULL OR id < ?3)
                ORDER BY id DESC LIMIT ?4"
            ))?;
            let state = filter.state.map(NotificationState::word);
            let mut rows = rows.query(params![state, filter.entry, before, page.fetch_limit()])?;
            let mut found = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let notification = notification(row)?;
                let weight = notification.weight();
                if !found.push(notification, weight) {
                    break;
                }
            }
            Ok(found.finish(page_end))
        })
        .await
    }

    async fn open_entries(&self) -> Result<Vec<String>, Error> {
        self.read(|db| {
            let sql = "SELECT DISTINCT entry FROM notifications WHERE state IN ('waiting', 'sending') ORDER BY entry";
            let mut rows = db.prepare_cached(sql)?;
            Ok(rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn counts(&self) -> Result<NotificationCounts, Error> {
        self.read(|db| {
            let mut rows = db.prepare_cached("SELECT state, count(*) FROM notifications GROUP BY state")?;
            let mut rows = rows.query([])?;
            let mut counts = NotificationCounts::default();
            while let Some(row) = rows.next()? {
                counts.set(&row.get::<_, String>(0)?, row.get(1)?)?;
            }
            Ok(counts)
        })
        .await
    }

    async fn prune(&self, keep: u32, ended_before: Timestamp) -> Result<u64, Error> {
        self.write(move |db| {
            let sql = "DELETE FROM notifications WHERE state NOT IN ('waiting', 'sending') AND (ended_at < ?2 OR id IN (
                SELECT id FROM (
                    SELECT id, row_number() OVER (PARTITION BY entry ORDER BY ended_at DESC, id DESC) AS number
                    FROM notifications WHERE state IN ('delivered', 'refused'))
                WHERE number > ?1))";
            Ok(db.prepare_cached(sql)?.execute(params![keep, ended_before.as_millis()])? as u64)
        })
        .await
    }

    async fn forget_sender(&self, sender: &str) -> Result<u64, Error> {
        let sender = sender.to_owned();
        self.write(move |db| {
            let mut rows =
                db.prepare_cached("SELECT id, payload FROM notifications WHERE instr(payload, ?1) > 0")?;
            let mut rows = rows.query([mark_of(&sender)])?;
            let mut changed = 0;
            while let Some(row) = rows.next()? {
                let (id, payload): (String, String) = (row.get(0)?, row.get(1)?);
                changed += match without_sender(&payload, &sender) {
                    Remainder::Unchanged => 0,
                    Remainder::Nothing => {
                        db.prepare_cached("DELETE FROM notifications WHERE id = ?1")?.execute([id])?
                    }
                    Remainder::Payload { payload, gone } => db
                        .prepare_cached(
                            "UPDATE notifications SET payload = ?2, count = max(1, count - ?3), revision = revision + 1
                            WHERE id = ?1",
                        )?
                        .execute(params![id, payload, signed(gone)])?,
                };
            }
            Ok(changed as u64)
        })
        .await
    }

    async fn import(&self, new: Notification) -> Result<bool, Error> {
        check_import(&new)?;
        self.write(move |db| {
            let sql = "INSERT INTO notifications (id, event, entry, group_key, severity, payload, count, state, attempt,
                    due_at, next_at, closes_at, created_at, ended_at, note)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                ON CONFLICT DO NOTHING";
            let inserted = db.prepare_cached(sql)?.execute(params![
                new.id,
                new.event,
                new.entry,
                new.group,
                new.severity,
                new.payload,
                signed(new.count),
                new.state.word(),
                new.attempt,
                new.due_at.as_millis(),
                new.next_at.as_millis(),
                new.closes_at.as_millis(),
                new.created_at.as_millis(),
                new.ended_at.map(Timestamp::as_millis),
                new.note,
            ])?;
            Ok(inserted > 0)
        })
        .await
    }
}

fn insert(db: &Connection, new: &NewNotification) -> Result<(), Error> {
    let sql = "INSERT INTO notifications (id, event, entry, group_key, severity, payload, count, state, due_at, next_at,
            closes_at, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting', ?8, ?8, ?9, ?10) ON CONFLICT (event, entry) DO NOTHING";
    db.prepare_cached(sql)?.execute(params![
        new.id,
        new.event,
        new.key.entry,
        new.key.group,
        new.severity,
        new.payload,
        signed(new.count),
        new.due_at.as_millis(),
        new.closes_at.as_millis(),
        new.created_at.as_millis(),
    ])?;
    Ok(())
}

fn cursor(db: &Connection, source: &str) -> Result<u64, Error> {
    let sql = "SELECT number FROM notification_cursors WHERE source = ?1";
    let number: Option<i64> = db.prepare_cached(sql)?.query_row([source], |row| row.get(0)).optional()?;
    Ok(number.map_or(0, i64::unsigned_abs))
}

fn latest(db: &Connection, key: &GroupKey) -> Result<Option<Notification>, Error> {
    let sql = concat!(notifications!(), " WHERE entry = ?1 AND group_key = ?2 ORDER BY id DESC LIMIT 1");
    Ok(all(db, sql, params![key.entry, key.group])?.pop())
}

fn find(db: &Connection, id: &str) -> Result<Option<Notification>, Error> {
    Ok(all(db, concat!(notifications!(), " WHERE id = ?1"), [id])?.pop())
}

fn all(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Notification>, Error> {
    let mut rows = db.prepare_cached(sql)?;
    let mut rows = rows.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(notification(row)?);
    }
    Ok(found)
}

fn notification(row: &Row<'_>) -> Result<Notification, Error> {
    NotificationColumns {
        id: row.get(0)?,
        event: row.get(1)?,
        entry: row.get(2)?,
        group: row.get(3)?,
        severity: row.get(4)?,
        payload: row.get(5)?,
        count: row.get(6)?,
        revision: row.get(7)?,
        state: row.get(8)?,
        attempt: row.get(9)?,
        due_at: row.get(10)?,
        next_at: row.get(11)?,
        closes_at: row.get(12)?,
        holder: row.get(13)?,
        epoch: row.get(14)?,
        lease_until: row.get(15)?,
        created_at: row.get(16)?,
        ended_at: row.get(17)?,
        note: row.get(18)?,
    }
    .try_into()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
