//! The outbox in PostgreSQL. Leases are by the server's clock, which all supervisors share.

use std::collections::BTreeSet;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::integers::{signed, unsigned};
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
            closes_at, holder, epoch, lease_until, created_at, ended_at, note FROM talon.notifications"
    };
}
/// The server's clock in milliseconds.
macro_rules! server_clock {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
/// Which ones may be claimed at $2.
macro_rules! may_be_claimed {
    () => {
        concat!(
            "(state = 'waiting' AND next_at <= $2 OR state = 'sending' AND lease_until <= ",
            server_clock!(),
            ")"
        )
    };
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn latest(&self, groups: &[GroupKey]) -> Result<Vec<Notification>, Error> {
        count("groups of events", groups.len(), MAX_BATCH)?;
        let client = self.client().await?;
        let found = async {
            let mut found = Vec::new();
            for key in groups {
                found.extend(latest(&client, key).await?);
            }
            Ok(found)
        };
        self.inspect_result(found.await)
    }

    async fn known_events(&self, events: &[(String, String)]) -> Result<Vec<(String, String)>, Error> {
        count("events", events.len(), MAX_BATCH)?;
        let client = self.client().await?;
        let found = async {
            let (events, entries): (Vec<&str>, Vec<&str>) =
                events.iter().map(|(event, entry)| (event.as_str(), entry.as_str())).unzip();
            let sql = "SELECT event, entry FROM talon.notifications
                JOIN unnest($1::text[], $2::text[]) AS asked (event, entry) USING (event, entry)";
            let sql = client.prepare_cached(sql).await?;
            let rows = client.query(&sql, &[&events, &entries]).await?;
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        };
        self.inspect_result(found.await)
    }

    async fn write(&self, batch: NotificationBatch) -> Result<bool, Error> {
        check_batch(&batch)?;
        let mut client = self.client().await?;
        let written = async {
            let transaction = client.transaction().await?;
            // Decisions about an entry take turns. In one order, so that two do not wait for each other.
            let entries: BTreeSet<&str> = batch.groups.iter().map(|(key, _)| key.entry.as_str()).collect();
            for entry in entries {
                lock(&transaction, entry).await?;
            }
            if let Some((source, from, _)) = &batch.cursor {
                lock(&transaction, &format!("cursor {source}")).await?;
                if cursor(&transaction, source).await? != *from {
                    return Ok(false);
                }
            }
            for (key, seen) in &batch.groups {
                if latest(&transaction, key).await?.map(|found| found.seen()) != *seen {
                    return Ok(false);
                }
            }
            for change in &batch.changes {
                match change {
                    NotificationChange::New(new) => insert(&transaction, new).await?,
                    NotificationChange::Extend { id, more, payload, severity } => {
                        // A claim may be faster: what was looked at must be there still.
                        let sql = "UPDATE talon.notifications SET count = count + $2, payload = coalesce($3, payload),
                                severity = $4, revision = revision + 1 WHERE id = $1 AND state = 'waiting'";
                        let sql = transaction.prepare_cached(sql).await?;
                        if transaction.execute(&sql, &[id, &signed(*more), payload, severity]).await? == 0 {
                            return Ok(false);
                        }
                    }
                }
            }
            if let Some((source, _, to)) = &batch.cursor {
                let sql = "INSERT INTO talon.notification_cursors (source, number) VALUES ($1, $2)
                    ON CONFLICT (source) DO UPDATE SET number = excluded.number";
                transaction.execute(sql, &[source, &signed(*to)]).await?;
            }
            self.commit(transaction, 1).await?;
            Ok(true)
        };
        self.inspect_result(written.await)
    }

    async fn cursor(&self, source: &str) -> Result<u64, Error> {
        let client = self.client().await?;
        self.inspect_result(cursor(&client, source).await)
    }

    async fn fold(&self, limit: u32, stand_in: NewNotification) -> Result<FoldedNotifications, Error> {
        check_new(&stand_in)?;
        let mut client = self.client().await?;
        let folded = async {
            let transaction = client.transaction().await?;
            let GroupKey { entry, group } = &stand_in.key;
            lock(&transaction, entry).await?;
            let sql = "SELECT count(*) FROM talon.notifications
                WHERE entry = $1 AND state IN ('waiting', 'sending') AND state = 'waiting' AND group_key <> $2";
            let sql = transaction.prepare_cached(sql).await?;
            let waiting: i64 = transaction.query_one(&sql, &[entry, group]).await?.try_get(0)?;
            let limit = i64::from(limit);
            if waiting <= limit {
                return Ok(FoldedNotifications::default());
            }
            let sql = "DELETE FROM talon.notifications WHERE id IN (
                    SELECT id FROM talon.notifications
                    WHERE entry = $1 AND state IN ('waiting', 'sending') AND state = 'waiting' AND group_key <> $2
                    ORDER BY CASE severity WHEN 'info' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, id LIMIT $3
                    FOR UPDATE SKIP LOCKED)
                RETURNING count";
            let sql = transaction.prepare_cached(sql).await?;
            let rows = transaction.query(&sql, &[entry, group, &(waiting - limit + limit / 10)]).await?;
            let mut folded = FoldedNotifications { notifications: rows.len() as u64, events: 0 };
            for row in rows {
                folded.events += unsigned(row.try_get(0)?);
            }
            let sql = "UPDATE talon.notifications SET count = count + $3, revision = revision + 1
                WHERE entry = $1 AND group_key = $2 AND state = 'waiting'";
            let sql = transaction.prepare_cached(sql).await?;
            if transaction.execute(&sql, &[entry, group, &signed(folded.events)]).await? == 0 {
                insert(&transaction, &NewNotification { count: folded.events, ..stand_in.clone() }).await?;
            }
            self.commit(transaction, 1).await?;
            Ok(folded)
        };
        self.inspect_result(folded.await)
    }

    async fn due(&self, entry: &str, now: Timestamp, limit: u32) -> Result<Vec<Notification>, Error> {
        let sql = concat!(
            notifications!(),
            " WHERE entry = $1 AND state IN ('waiting', 'sending') AND ",
            may_be_claimed!(),
            " ORDER BY next_at, id LIMIT $3"
        );
        self.notifications(sql, &[&entry, &now.as_millis(), &i64::from(limit)]).await
    }

    async fn next_due(&self, entry: &str, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let client = self.client().await?;
        let next = async {
            let sql = "SELECT min(CASE state WHEN 'waiting' THEN next_at ELSE lease_until END) FROM talon.notifications
                WHERE entry = $1 AND state IN ('waiting', 'sending')
                    AND CASE state WHEN 'waiting' THEN next_at ELSE lease_until END > $2";
            let sql = client.prepare_cached(sql).await?;
            let next: Option<i64> = client.query_one(&sql, &[&entry, &now.as_millis()]).await?.try_get(0)?;
            Ok(next.map(Timestamp::from_millis))
        };
        self.inspect_result(next.await)
    }

    async fn claim(&self, claim: NotificationClaim) -> Result<Option<Notification>, Error> {
        name("a holder", &claim.holder)?;
        let sql = concat!(
            "UPDATE talon.notifications SET state = 'sending', attempt = attempt + 1, holder = $3, epoch = epoch + 1,
                lease_until = ",
            server_clock!(),
            " + $4, revision = revision + 1 WHERE id = $1 AND ",
            may_be_claimed!()
        );
        let lease = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX);
        let mut client = self.client().await?;
        let claimed = async {
            let transaction = client.transaction().await?;
            let statement = transaction.prepare_cached(sql).await?;
            let values: [&(dyn ToSql + Sync); 4] = [&claim.id, &claim.now.as_millis(), &claim.holder, &lease];
            if transaction.execute(&statement, &values).await? == 0 {
                return Ok(None);
            }
            let found = find(&transaction, &claim.id).await?;
            self.commit(transaction, 1).await?;
            Ok(found)
        };
        self.inspect_result(claimed.await)
    }

    async fn end(
        &self,
        handle: &NotificationHandle,
        end: NotificationEnd,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (state, next, note) = match end {
            NotificationEnd::Delivered => (NotificationState::Delivered, None, String::new()),
            NotificationEnd::Refused(note) => (NotificationState::Refused, None, note),
            NotificationEnd::GivenUp(note) => (NotificationState::GivenUp, None, note),
            NotificationEnd::Retry { note, at } => (NotificationState::Waiting, Some(at.as_millis()), note),
            NotificationEnd::Released => (NotificationState::Waiting, Some(now.as_millis()), String::new()),
        };
        check_reason(&note)?;
        let ended = state.is_finished().then_some(now.as_millis());
        let sql = "UPDATE talon.notifications SET state = $3, next_at = coalesce($4, next_at), ended_at = $5, note = $6,
                lease_until = 0, revision = revision + 1
            WHERE id = $1 AND epoch = $2 AND state = 'sending'";
        let values: [&(dyn ToSql + Sync); 6] =
            [&handle.id, &signed(handle.epoch), &state.word(), &next, &ended, &note];
        Ok(self.change_notifications(sql, &values).await? > 0)
    }

    async fn expire_leases(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn retry(&self, id: Option<&str>, now: Timestamp) -> Result<u64, Error> {
        let sql = "UPDATE talon.notifications SET due_at = CASE state WHEN 'waiting' THEN due_at ELSE $2 END,
                state = 'waiting', next_at = $2, ended_at = NULL, revision = revision + 1
            WHERE ($1::text IS NULL OR id = $1)
                AND (state IN ('refused', 'given_up') OR state = 'waiting' AND attempt > 0)";
        self.change_notifications(sql, &[&id, &now.as_millis()]).await
    }

    async fn get(&self, id: &str) -> Result<Option<Notification>, Error> {
        let client = self.client().await?;
        self.inspect_result(find(&client, id).await)
    }

    async fn list(
        &self,
        filter: &NotificationFilter,
        page: &PageRequest,
    ) -> Result<Page<Notification>, Error> {
        let before = page_start(page)?;
        let sql = concat!(
            notifications!(),
            " WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR entry = $2)
                AND ($3::text IS NULL OR id < $3) ORDER BY id DESC LIMIT $4"
        );
        let state = filter.state.map(NotificationState::word);
        let listed = self.notifications(sql, &[&state, &filter.entry, &before, &page.fetch_limit()]).await?;
        let mut found = PageBuilder::new(page);
        for notification in listed {
            let weight = notification.weight();
            if !found.push(notification, weight) {
                break;
            }
        }
        Ok(found.finish(page_end))
    }

    async fn open_entries(&self) -> Result<Vec<String>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = "SELECT DISTINCT entry FROM talon.notifications WHERE state IN ('waiting', 'sending') ORDER BY entry";
            let sql = client.prepare_cached(sql).await?;
            client.query(&sql, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
        };
        self.inspect_result(found.await)
    }

    async fn counts(&self) -> Result<NotificationCounts, Error> {
        let client = self.client().await?;
        let counted = async {
            let sql = "SELECT state, count(*) FROM talon.notifications GROUP BY state";
            let sql = client.prepare_cached(sql).await?;
            let mut counts = NotificationCounts::default();
            for row in client.query(&sql, &[]).await? {
                counts.set(row.try_get(0)?, row.try_get(1)?)?;
            }
            Ok(counts)
        };
        self.inspect_result(counted.await)
    }

    async fn prune(&self, keep: u32, ended_before: Timestamp) -> Result<u64, Error> {
        let sql = "DELETE FROM talon.notifications
            WHERE state NOT IN ('waiting', 'sending') AND (ended_at < $2 OR id IN (
                SELECT id FROM (
                    SELECT id, row_number() OVER (PARTITION BY entry ORDER BY ended_at DESC, id DESC) AS number
                    FROM talon.notifications WHERE state IN ('delivered', 'refused')) AS finished
                WHERE number > $1))";
        self.change_notifications(sql, &[&i64::from(keep), &ended_before.as_millis()]).await
    }

    async fn forget_sender(&self, sender: &str) -> Result<u64, Error> {
        let mut client = self.client().await?;
        let forgotten = async {
            let transaction = client.transaction().await?;
            let sql = "SELECT id, payload FROM talon.notifications WHERE strpos(payload, $1) > 0 FOR UPDATE";
            let rows = transaction.query(sql, &[&mark_of(sender)]).await?;
            let mut changed = 0;
            for row in rows {
                let (id, payload): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                changed += match without_sender(&payload, sender) {
                    Remainder::Unchanged => 0,
                    Remainder::Nothing => {
                        transaction.execute("DELETE FROM talon.notifications WHERE id = $1", &[&id]).await?
                    }
                    Remainder::Payload { payload, gone } => {
                        let sql =
                            "UPDATE talon.notifications SET payload = $2, count = greatest(1, count - $3),
                                revision = revision + 1 WHERE id = $1";
                        transaction.execute(sql, &[&id, &payload, &signed(gone)]).await?
                    }
                };
            }
            self.commit(transaction, 1).await?;
            Ok(changed)
        };
        self.inspect_result(forgotten.await)
    }

    async fn import(&self, new: Notification) -> Result<bool, Error> {
        check_import(&new)?;
        let sql = "INSERT INTO talon.notifications (id, event, entry, group_key, severity, payload, count, state, attempt,
                due_at, next_at, closes_at, created_at, ended_at, note)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            ON CONFLICT DO NOTHING";
        let millis = Timestamp::as_millis;
        let values: [&(dyn ToSql + Sync); 15] = [
            &new.id,
            &new.event,
            &new.entry,
            &new.group,
            &new.severity,
            &new.payload,
            &signed(new.count),
            &new.state.word(),
            &i64::from(new.attempt),
            &millis(new.due_at),
            &millis(new.next_at),
            &millis(new.closes_at),
            &millis(new.created_at),
            &new.ended_at.map(millis),
            &new.note,
        ];
        Ok(self.change_notifications(sql, &values).await? > 0)
    }
}

impl PostgresStore {
    /// Executes a statement in a transaction; returns how many rows it changed.
    async fn change_notifications(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
        let mut client = self.client().await?;
        let changed = async {
            let transaction = client.transaction().await?;
            let statement = transaction.prepare_cached(sql).await?;
            let changed = transaction.execute(&statement, values).await?;
            self.commit(transaction, 1).await?;
            Ok(changed)
        };
        self.inspect_result(changed.await)
    }

    async fn notifications(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Notification>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = client.prepare_cached(sql).await?;
            client.query(&sql, values).await?.iter().map(notification).collect()
        };
        self.inspect_result(found.await)
    }
}

/// Has transactions about an entry take turns.
async fn lock(db: &impl GenericClient, entry: &str) -> Result<(), Error> {
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended('talon notification ' || $1, 0))";
    db.execute(sql, &[&entry]).await?;
    Ok(())
}

async fn insert(db: &impl GenericClient, new: &NewNotification) -> Result<(), Error> {
    let sql = "INSERT INTO talon.notifications (id, event, entry, group_key, severity, payload, count, state, due_at,
            next_at, closes_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', $8, $8, $9, $10) ON CONFLICT (event, entry) DO NOTHING";
    let sql = db.prepare_cached(sql).await?;
    let values: [&(dyn ToSql + Sync); 10] = [
        &new.id,
        &new.event,
        &new.key.entry,
        &new.key.group,
        &new.severity,
        &new.payload,
        &signed(new.count),
        &new.due_at.as_millis(),
        &new.closes_at.as_millis(),
        &new.created_at.as_millis(),
    ];
    db.execute(&sql, &values).await?;
    Ok(())
}

async fn cursor(db: &impl GenericClient, source: &str) -> Result<u64, Error> {
    let sql = "SELECT number FROM talon.notification_cursors WHERE source = $1";
    match db.query_opt(sql, &[&source]).await? {
        Some(row) => Ok(unsigned(row.try_get(0)?)),
        None => Ok(0),
    }
}

async fn latest(db: &impl GenericClient, key: &GroupKey) -> Result<Option<Notification>, Error> {
    let sql = concat!(notifications!(), " WHERE entry = $1 AND group_key = $2 ORDER BY id DESC LIMIT 1");
    let sql = db.prepare_cached(sql).await?;
    let row = db.query_opt(&sql, &[&key.entry, &key.group]).await?;
    row.map(|row| notification(&row)).transpose()
}

async fn find(db: &impl GenericClient, id: &str) -> Result<Option<Notification>, Error> {
    let sql = db.prepare_cached(concat!(notifications!(), " WHERE id = $1")).await?;
    let row = db.query_opt(&sql, &[&id]).await?;
    row.map(|row| notification(&row)).transpose()
}

fn notification(row: &Row) -> Result<Notification, Error> {
    NotificationColumns {
        id: row.try_get(0)?,
        event: row.try_get(1)?,
        entry: row.try_get(2)?,
        group: row.try_get(3)?,
        severity: row.try_get(4)?,
        payload: row.try_get(5)?,
        count: row.try_get(6)?,
        revision: row.try_get(7)?,
        state: row.try_get(8)?,
        attempt: row.try_get(9)?,
        due_at: row.try_get(10)?,
        next_at: row.try_get(11)?,
        closes_at: row.try_get(12)?,
        holder: row.try_get(13)?,
        epoch: row.try_get(14)?,
        lease_until: row.try_get(15)?,
        created_at: row.try_get(16)?,
        ended_at: row.try_get(17)?,
        note: row.try_get(18)?,
    }
    .try_into()
}
