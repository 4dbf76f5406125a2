//! The schedule in PostgreSQL. Leases are by the server's clock, which all supervisors share.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::integers::signed;
use crate::error::Error;
use crate::limits::name;
use crate::page::{Page, PageBuilder, PageRequest};
use crate::schedule::{
    Claim, JobTiming, Occurrence, OccurrenceColumns, OccurrenceState, Plan, RunEnd, RunHandle, Schedule,
    ScheduledJob, check_note, check_plan, check_result, page_end, page_start, result_json,
};
use crate::time::Timestamp;

/// The columns that [`occurrence`] reads.
macro_rules! columns {
    () => {
        "job, planned_at, begins_at, kind, state, attempt, holder, epoch, lease_until, started_at, ended_at, session,
            turn, note, called_at, result"
    };
}
/// The server's clock in milliseconds.
macro_rules! server_clock {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
/// Whether a running occurrence has this claim as its latest.
macro_rules! is_ours {
    () => {
        " WHERE job = $1 AND planned_at = $2 AND epoch = $3 AND state = 'running'"
    };
}

#[async_trait]
impl Schedule for PostgresStore {
    async fn set_jobs(&self, jobs: Vec<JobTiming>, now: Timestamp) -> Result<Vec<ScheduledJob>, Error> {
        jobs.iter().try_for_each(|job| name("a job's id", &job.job))?;
        let mut client = self.client().await?;
        let set = async {
            let transaction = client.transaction().await?;
            let (ids, timings): (Vec<String>, Vec<String>) =
                jobs.into_iter().map(|JobTiming { job, timing }| (job, timing)).unzip();
            // In one order, so that two supervisors do not wait for each other's rows.
            let sql = "INSERT INTO talon.schedule_jobs AS stored (job, timing, progress, paused)
                SELECT job, timing, $3, false FROM unnest($1::text[], $2::text[]) AS new (job, timing) ORDER BY job
                ON CONFLICT (job) DO UPDATE SET timing = excluded.timing, progress = excluded.progress
                    WHERE stored.timing <> excluded.timing";
            transaction.execute(sql, &[&ids, &timings, &now.as_millis()]).await?;
            let sql = "DELETE FROM talon.schedule_jobs WHERE job <> ALL ($1)";
            transaction.execute(sql, &[&ids]).await?;
            let jobs = stored_jobs(&transaction).await?;
            self.commit(transaction, 1).await?;
            Ok(jobs)
        };
        self.inspect_result(set.await)
    }

    async fn jobs(&self) -> Result<Vec<ScheduledJob>, Error> {
        let client = self.client().await?;
        self.inspect_result(stored_jobs(&client).await)
    }

    async fn plan(&self, plan: Plan) -> Result<bool, Error> {
        check_plan(&plan)?;
        let mut client = self.client().await?;
        let planned = async {
            let transaction = client.transaction().await?;
            let sql = "UPDATE talon.schedule_jobs SET progress = $3 WHERE job = $1 AND progress = $2";
            let (from, to) = (plan.from.as_millis(), plan.to.as_millis());
            if transaction.execute(sql, &[&plan.job, &from, &to]).await? == 0 {
                return Ok(false);
            }
            let sql = transaction
                .prepare_cached(
                    "INSERT INTO talon.occurrences (job, planned_at, begins_at, kind, state, note, ended_at)
                    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (job, planned_at) DO NOTHING",
                )
                .await?;
            for new in &plan.occurrences {
                let (state, note) = match &new.missed {
                    Some(note) => (OccurrenceState::Missed, note.as_str()),
                    None => (OccurrenceState::Planned, ""),
                };
                let ended = new.missed.as_ref().map(|_| new.begins_at.as_millis());
                let (planned, begins) = (new.planned_at.as_millis(), new.begins_at.as_millis());
                let values: [&(dyn ToSql + Sync); 7] =
                    [&plan.job, &planned, &begins, &new.kind.word(), &state.word(), &note, &ended];
                transaction.execute(&sql, &values).await?;
            }
            self.commit(transaction, 1).await?;
            Ok(true)
        };
        self.inspect_result(planned.await)
    }

    async fn set_paused(&self, job: &str, paused: bool, now: Timestamp) -> Result<bool, Error> {
        let sql = "UPDATE talon.schedule_jobs SET paused = $2, progress = greatest(progress, $3)
            WHERE job = $1 AND paused <> $2";
        self.change_schedule(sql, &[&job, &paused, &now.as_millis()]).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Occurrence>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = concat!(
                "SELECT ",
                columns!(),
                " FROM talon.occurrences WHERE state IN ('planned', 'running')
                ORDER BY begins_at, job, planned_at LIMIT $1"
            );
            let sql = client.prepare_cached(sql).await?;
            client.query(&sql, &[&i64::from(limit)]).await?.iter().map(occurrence).collect()
        };
        self.inspect_result(found.await)
    }

    async fn claim(&self, claim: Claim) -> Result<Option<Occurrence>, Error> {
        name("a holder", &claim.holder)?;
        let mut client = self.client().await?;
        let claimed = async {
            let transaction = client.transaction().await?;
            // Claims of a job take turns, so that two of its occurrences are not claimed at once.
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended('talon schedule ' || $1, 0))";
            transaction.execute(lock, &[&claim.job]).await?;
            let sql = concat!(
                "UPDATE talon.occurrences o
                SET attempt = attempt + (state = 'planned')::int, state = 'running', holder = $3, epoch = epoch + 1,
                    lease_until = ",
                server_clock!(),
                " + $4, started_at = coalesce(started_at, $5)
                WHERE job = $1 AND planned_at = $2
                    AND (state = 'planned' OR state = 'running' AND lease_until <= ",
                server_clock!(),
                ") AND NOT EXISTS (SELECT 1 FROM talon.occurrences other
                    WHERE other.job = $1 AND other.planned_at <> $2 AND other.state = 'running')
                RETURNING ",
                columns!()
            );
            let (planned, lease, now) =
                (claim.planned_at.as_millis(), millis(claim.lease), claim.now.as_millis());
            let row =
                transaction.query_opt(sql, &[&claim.job, &planned, &claim.holder, &lease, &now]).await?;
            self.commit(transaction, 1).await?;
            row.map(|row| occurrence(&row)).transpose()
        };
        self.inspect_result(claimed.await)
    }

    async fn renew(&self, run: &RunHandle, lease: Duration) -> Result<bool, Error> {
        let sql =
            concat!("UPDATE talon.occurrences SET lease_until = ", server_clock!(), " + $4", is_ours!());
        self.change_schedule(
            sql,
            &[&run.job, &run.planned_at.as_millis(), &signed(run.epoch), &millis(lease)],
        )
        .await
    }

    async fn set_turn(&self, run: &RunHandle, session: &str, turn: u64) -> Result<bool, Error> {
        name("a session's id", session)?;
        let sql = concat!("UPDATE talon.occurrences SET session = $4, turn = $5", is_ours!());
        let (planned, epoch, turn) = (run.planned_at.as_millis(), signed(run.epoch), signed(turn));
        self.change_schedule(sql, &[&run.job, &planned, &epoch, &session, &turn]).await
    }

    async fn set_called(&self, run: &RunHandle, now: Timestamp) -> Result<bool, Error> {
        let sql = concat!("UPDATE talon.occurrences SET called_at = $4", is_ours!());
        let (planned, epoch, now) = (run.planned_at.as_millis(), signed(run.epoch), now.as_millis());
        self.change_schedule(sql, &[&run.job, &planned, &epoch, &now]).await
    }

    async fn end(&self, run: &RunHandle, end: RunEnd, now: Timestamp) -> Result<bool, Error> {
        let (planned, epoch, now) = (run.planned_at.as_millis(), signed(run.epoch), now.as_millis());
        match end {
            RunEnd::Done(result) => {
                result.as_ref().map_or(Ok(()), check_result)?;
                let result = result.as_ref().map(result_json);
                let sql = concat!(
                    "UPDATE talon.occurrences SET state = 'done', ended_at = $4, note = '', result = $5",
                    is_ours!()
                );
                self.change_schedule(sql, &[&run.job, &planned, &epoch, &now, &result]).await
            }
            RunEnd::Failed(note) => {
                check_note(&note)?;
                let sql = concat!(
                    "UPDATE talon.occurrences SET state = 'failed', ended_at = $4, note = $5",
                    is_ours!()
                );
                self.change_schedule(sql, &[&run.job, &planned, &epoch, &now, &note]).await
            }
            RunEnd::Retry { note, at } => {
                check_note(&note)?;
                // A retry takes a turn, or a call, of its own.
                let sql = concat!(
                    "UPDATE talon.occurrences SET state = 'planned', begins_at = $4, note = $5, turn = NULL, called_at = NULL",
                    is_ours!()
                );
                self.change_schedule(sql, &[&run.job, &planned, &epoch, &at.as_millis(), &note]).await
            }
            RunEnd::Released => {
                let sql = concat!("UPDATE talon.occurrences SET lease_until = 0", is_ours!());
                self.change_schedule(sql, &[&run.job, &planned, &epoch]).await
            }
        }
    }

    async fn miss(&self, job: &str, planned_at: Timestamp, note: &str) -> Result<bool, Error> {
        check_note(note)?;
        let sql = "UPDATE talon.occurrences SET state = 'missed', note = $3, ended_at = begins_at
            WHERE job = $1 AND planned_at = $2 AND state = 'planned'";
        self.change_schedule(sql, &[&job, &planned_at.as_millis(), &note]).await
    }

    async fn expire_leases(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn get(&self, job: &str, planned_at: Timestamp) -> Result<Option<Occurrence>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql =
                concat!("SELECT ", columns!(), " FROM talon.occurrences WHERE job = $1 AND planned_at = $2");
            let sql = client.prepare_cached(sql).await?;
            let row = client.query_opt(&sql, &[&job, &planned_at.as_millis()]).await?;
            row.map(|row| occurrence(&row)).transpose()
        };
        self.inspect_result(found.await)
    }

    async fn history(&self, job: Option<&str>, page: &PageRequest) -> Result<Page<Occurrence>, Error> {
        let (planned, after) = page_start(page)?.map_or((None, None), |(at, job)| (Some(at), Some(job)));
        let client = self.client().await?;
        let listed = async {
            let sql = concat!(
                "SELECT ",
                columns!(),
                " FROM talon.occurrences WHERE ($1::text IS NULL OR job = $1)
                    AND ($2::bigint IS NULL OR (planned_at, job) < ($2, $3::text COLLATE \"C\"))
                ORDER BY planned_at DESC, job DESC LIMIT $4"
            );
            let sql = client.prepare_cached(sql).await?;
            let mut found = PageBuilder::new(page);
            for row in client.query(&sql, &[&job, &planned, &after, &page.fetch_limit()]).await? {
                let occurrence = occurrence(&row)?;
                let weight = occurrence.weight();
                if !found.push(occurrence, weight) {
                    break;
                }
            }
            Ok(found.finish(page_end))
        };
        self.inspect_result(listed.await)
    }

    async fn prune(&self, keep: u32) -> Result<u64, Error> {
        let mut client = self.client().await?;
        let pruned = async {
            let transaction = client.transaction().await?;
            let sql = "DELETE FROM talon.occurrences WHERE (job, planned_at) IN (
                SELECT job, planned_at FROM (
                    SELECT job, planned_at, row_number() OVER (PARTITION BY job ORDER BY planned_at DESC) AS number
                    FROM talon.occurrences WHERE state NOT IN ('planned', 'running')) AS finished
                WHERE number > $1)";
            let gone = transaction.execute(sql, &[&i64::from(keep)]).await?;
            self.commit(transaction, 1).await?;
            Ok(gone)
        };
        self.inspect_result(pruned.await)
    }

    async fn import(&self, new: Occurrence) -> Result<bool, Error> {
        name("a job's id", &new.job)?;
        check_note(&new.note)?;
        new.result.as_ref().map_or(Ok(()), check_result)?;
        let sql =
            "INSERT INTO talon.occurrences (job, planned_at, begins_at, kind, state, attempt, holder, epoch,
                started_at, ended_at, session, turn, note, called_at, result)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            ON CONFLICT (job, planned_at) DO NOTHING";
        let millis = Timestamp::as_millis;
        let (started, ended) = (new.started_at.map(millis), new.ended_at.map(millis));
        self.change_schedule(
            sql,
            &[
                &new.job,
                &new.planned_at.as_millis(),
                &new.begins_at.as_millis(),
                &new.kind.word(),
                &new.state.word(),
                &i64::from(new.attempt),
                &new.holder,
                &signed(new.epoch),
                &started,
                &ended,
                &new.session,
                &new.turn.map(signed),
                &new.note,
                &new.called_at.map(millis),
                &new.result.as_ref().map(result_json),
            ],
        )
        .await
    }
}

impl PostgresStore {
    /// Executes a statement in a transaction; returns whether it changed something.
    async fn change_schedule(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<bool, Error> {
        let mut client = self.client().await?;
        let changed = async {
            let transaction = client.transaction().await?;
            let statement = transaction.prepare_cached(sql).await?;
            let changed = transaction.execute(&statement, values).await?;
            self.commit(transaction, 1).await?;
            Ok(changed > 0)
        };
        self.inspect_result(changed.await)
    }
}

async fn stored_jobs(db: &impl GenericClient) -> Result<Vec<ScheduledJob>, Error> {
    let sql = "SELECT job, timing, progress, paused FROM talon.schedule_jobs ORDER BY job";
    let sql = db.prepare_cached(sql).await?;
    let job = |row: &Row| {
        Ok(ScheduledJob {
            job: row.try_get(0)?,
            timing: row.try_get(1)?,
            progress: Timestamp::from_millis(row.try_get(2)?),
            paused: row.try_get(3)?,
        })
    };
    db.query(&sql, &[]).await?.iter().map(job).collect()
}

fn occurrence(row: &Row) -> Result<Occurrence, Error> {
    OccurrenceColumns {
        job: row.try_get(0)?,
        planned_at: row.try_get(1)?,
        begins_at: row.try_get(2)?,
        kind: row.try_get(3)?,
        state: row.try_get(4)?,
        attempt: row.try_get(5)?,
        holder: row.try_get(6)?,
        epoch: row.try_get(7)?,
        lease_until: row.try_get(8)?,
        started_at: row.try_get(9)?,
        ended_at: row.try_get(10)?,
        session: row.try_get(11)?,
        turn: row.try_get(12)?,
        note: row.try_get(13)?,
        called_at: row.try_get(14)?,
        result: row.try_get(15)?,
    }
    .try_into()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
