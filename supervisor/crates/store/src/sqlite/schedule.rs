//! The schedule in SQLite. Leases are by this machine's clock.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use crate::error::Error;
use crate::limits::name;
use crate::page::{Page, PageBuilder, PageRequest};
use crate::schedule::{
    Claim, JobTiming, Occurrence, OccurrenceColumns, OccurrenceState, Plan, RunEnd, RunHandle, Schedule,
    ScheduledJob, check_note, check_plan, check_result, page_end, page_start, result_json,
};
use crate::time::Timestamp;

/// The columns that [`occurrence`] reads.
macro_rules! occurrences {
    () => {
        "SELECT job, planned_at, begins_at, kind, state, attempt, holder, epoch, lease_until, started_at, ended_at,
            session, turn, note, called_at, result FROM occurrences"
    };
}

#[async_trait]
impl Schedule for SqliteStore {
    async fn set_jobs(&self, jobs: Vec<JobTiming>, now: Timestamp) -> Result<Vec<ScheduledJob>, Error> {
        jobs.iter().try_for_each(|job| name("a job's id", &job.job))?;
        self.write(move |db| {
            let mut set = db.prepare_cached(
                "INSERT INTO schedule_jobs (job, timing, progress, paused) VALUES (?1, ?2, ?3, 0)
                ON CONFLICT (job) DO UPDATE SET timing = excluded.timing, progress = excluded.progress
                    WHERE timing <> excluded.timing",
            )?;
            for JobTiming { job, timing } in &jobs {
                set.execute(params![job, timing, now.as_millis()])?;
            }
            let kept: Vec<&String> = jobs.iter().map(|job| &job.job).collect();
            let kept = serde_json::to_string(&kept).expect("lists of texts are always JSON");
            db.prepare_cached(
                "DELETE FROM schedule_jobs WHERE job NOT IN (SELECT value FROM json_each(?1))",
            )?
            .execute([kept])?;
            stored_jobs(db)
        })
        .await
    }

    async fn jobs(&self) -> Result<Vec<ScheduledJob>, Error> {
        self.read(stored_jobs).await
    }

    async fn plan(&self, plan: Plan) -> Result<bool, Error> {
        check_plan(&plan)?;
        self.write(move |db| {
            let moved = db
                .prepare_cached("UPDATE schedule_jobs SET progress = ?3 WHERE job = ?1 AND progress = ?2")?
                .execute(params![plan.job, plan.from.as_millis(), plan.to.as_millis()])?;
            if moved == 0 {
                return Ok(false);
            }
            let mut insert = db.prepare_cached(
                "INSERT INTO occurrences (job, planned_at, begins_at, kind, state, note, ended_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (job, planned_at) DO NOTHING",
            )?;
            for new in &plan.occurrences {
                let (state, note) = match &new.missed {
                    Some(note) => (OccurrenceState::Missed, note.as_str()),
                    None => (OccurrenceState::Planned, ""),
                };
                let ended = new.missed.as_ref().map(|_| new.begins_at.as_millis());
                let (planned, begins) = (new.planned_at.as_millis(), new.begins_at.as_millis());
                insert.execute(params![
                    plan.job,
                    planned,
                    begins,
                    new.kind.word(),
                    state.word(),
                    note,
                    ended
                ])?;
            }
            Ok(true)
        })
        .await
    }

    async fn set_paused(&self, job: &str, paused: bool, now: Timestamp) -> Result<bool, Error> {
        let job = job.to_owned();
        self.write(move |db| {
            let sql = "UPDATE schedule_jobs SET paused = ?2, progress = max(progress, ?3) WHERE job = ?1 AND paused <> ?2";
            Ok(db.prepare_cached(sql)?.execute(params![job, paused, now.as_millis()])? > 0)
        })
        .await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Occurrence>, Error> {
        self.read(move |db| {
            let sql = concat!(
                occurrences!(),
                " WHERE state IN ('planned', 'running') ORDER BY begins_at, job, planned_at LIMIT ?1"
            );
            let mut rows = db.prepare_cached(sql)?;
            let mut rows = rows.query([limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(occurrence(row)?);
            }
            Ok(found)
        })
        .await
    }

    async fn claim(&self, claim: Claim) -> Result<Option<Occurrence>, Error> {
        name("a holder", &claim.holder)?;
        self.write(move |db| {
            let (planned, now) = (claim.planned_at.as_millis(), claim.now.as_millis());
            let until = now.saturating_add(millis(claim.lease));
            let sql = "UPDATE occurrences SET attempt = attempt + (state = 'planned'), state = 'running', holder = ?3,
                    epoch = epoch + 1, lease_until = ?5, started_at = coalesce(started_at, ?4)
                WHERE job = ?1 AND planned_at = ?2 AND (state = 'planned' OR state = 'running' AND lease_until <= ?4)
                    AND NOT EXISTS (SELECT 1 FROM occurrences other
                        WHERE other.job = ?1 AND other.planned_at <> ?2 AND other.state = 'running')";
            let claimed =
                db.prepare_cached(sql)?.execute(params![claim.job, planned, claim.holder, now, until])?;
            if claimed == 0 { Ok(None) } else { find(db, &claim.job, claim.planned_at) }
        })
        .await
    }

    async fn renew(&self, run: &RunHandle, lease: Duration) -> Result<bool, Error> {
        let run = run.clone();
        self.write(move |db| {
            let until = Timestamp::now().as_millis().saturating_add(millis(lease));
            change(db, &run, "lease_until = ?4", &until)
        })
        .await
    }

    async fn set_turn(&self, run: &RunHandle, session: &str, turn: u64) -> Result<bool, Error> {
        name("a session's id", session)?;
        let (run, session) = (run.clone(), session.to_owned());
        self.write(move |db| {
            let turn = i64::try_from(turn).unwrap_or(i64::MAX);
            Ok(change(db, &run, "session = ?4", &session)? && change(db, &run, "turn = ?4", &turn)?)
        })
        .await
    }

    async fn set_called(&self, run: &RunHandle, now: Timestamp) -> Result<bool, Error> {
        let run = run.clone();
        self.write(move |db| change(db, &run, "called_at = ?4", &now.as_millis())).await
    }

    async fn end(&self, run: &RunHandle, end: RunEnd, now: Timestamp) -> Result<bool, Error> {
        let (run, now) = (run.clone(), now.as_millis());
        if let RunEnd::Failed(note) | RunEnd::Retry { note, .. } = &end {
            check_note(note)?;
        }
        if let RunEnd::Done(Some(result)) = &end {
            check_result(result)?;
        }
        self.write(move |db| {
            let is_ours = " WHERE job = ?1 AND planned_at = ?2 AND epoch = ?3 AND state = 'running'";
            let (planned, epoch) = (run.planned_at.as_millis(), signed(run.epoch));
            let changed = match &end {
                RunEnd::Done(result) => db
                    .prepare_cached(&format!(
                        "UPDATE occurrences SET state = 'done', ended_at = ?4, note = '', result = ?5{is_ours}"
                    ))?
                    .execute(params![run.job, planned, epoch, now, result.as_ref().map(result_json)]),
                RunEnd::Failed(note) => db
                    .prepare_cached(&format!(
                        "UPDATE occurrences SET state = 'failed', ended_at = ?4, note = ?5{is_ours}"
                    ))?
                    .execute(params![run.job, planned, epoch, now, note]),
                // A retry takes a turn, or a call, of its own.
                RunEnd::Retry { note, at } => db
                    .prepare_cached(&format!(
                        "UPDATE occurrences SET state = 'planned', begins_at = ?4, note = ?5, turn = NULL, called_at = NULL{is_ours}"
                    ))?
                    .execute(params![run.job, planned, epoch, at.as_millis(), note]),
                RunEnd::Released => db
                    .prepare_cached(&format!("UPDATE occurrences SET lease_until = 0{is_ours}"))?
                    .execute(params![run.job, planned, epoch]),
            }?;
            Ok(changed > 0)
        })
        .await
    }

    async fn miss(&self, job: &str, planned_at: Timestamp, note: &str) -> Result<bool, Error> {
        check_note(note)?;
        let (job, note) = (job.to_owned(), note.to_owned());
        self.write(move |db| {
            let sql = "UPDATE occurrences SET state = 'missed', note = ?3, ended_at = begins_at
                WHERE job = ?1 AND planned_at = ?2 AND state = 'planned'";
            Ok(db.prepare_cached(sql)?.execute(params![job, planned_at.as_millis(), note])? > 0)
        })
        .await
    }

    async fn expire_leases(&self) -> Result<(), Error> {
        self.write(|db| {
            db.prepare_cached("UPDATE occurrences SET lease_until = 0 WHERE state = 'running'")?
                .execute([])?;
            Ok(())
        })
        .await
    }

    async fn get(&self, job: &str, planned_at: Timestamp) -> Result<Option<Occurrence>, Error> {
        let job = job.to_owned();
        self.read(move |db| find(db, &job, planned_at)).await
    }

    async fn history(&self, job: Option<&str>, page: &PageRequest) -> Result<Page<Occurrence>, Error> {
        let (job, page) = (job.map(str::to_owned), page.clone());
        let last = page_start(&page)?;
        self.read(move |db| {
            let mut rows = db.prepare_cached(concat!(
                occurrences!(),
                " WHERE (?1 IS NULL OR job = ?1) AND (?2 IS NULL OR (planned_at, job) < (?2, ?3))
                ORDER BY planned_at DESC, job DESC LIMIT ?4"
            ))?;
            let (planned, after) = last.map_or((None, None), |(planned, job)| (Some(planned), Some(job)));
            let mut rows = rows.query(params![job, planned, after, page.fetch_limit()])?;
            let mut found = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let occurrence = occurrence(row)?;
                let weight = occurrence.weight();
                if !found.push(occurrence, weight) {
                    break;
                }
            }
            Ok(found.finish(page_end))
        })
        .await
    }

    async fn prune(&self, keep: u32) -> Result<u64, Error> {
        self.write(move |db| {
            let sql = "DELETE FROM occurrences WHERE (job, planned_at) IN (
                SELECT job, planned_at FROM (
                    SELECT job, planned_at, row_number() OVER (PARTITION BY job ORDER BY planned_at DESC) AS number
                    FROM occurrences WHERE state NOT IN ('planned', 'running'))
                WHERE number > ?1)";
            Ok(db.prepare_cached(sql)?.execute([keep])? as u64)
        })
        .await
    }

    async fn import(&self, new: Occurrence) -> Result<bool, Error> {
        name("a job's id", &new.job)?;
        check_note(&new.note)?;
        new.result.as_ref().map_or(Ok(()), check_result)?;
        self.write(move |db| {
            let sql =
                "INSERT INTO occurrences (job, planned_at, begins_at, kind, state, attempt, holder, epoch,
                    started_at, ended_at, session, turn, note, called_at, result)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                ON CONFLICT (job, planned_at) DO NOTHING";
            let inserted = db.prepare_cached(sql)?.execute(params![
                new.job,
                new.planned_at.as_millis(),
                new.begins_at.as_millis(),
                new.kind.word(),
                new.state.word(),
                new.attempt,
                new.holder,
                signed(new.epoch),
                new.started_at.map(Timestamp::as_millis),
                new.ended_at.map(Timestamp::as_millis),
                new.session,
                new.turn.map(signed),
                new.note,
                new.called_at.map(Timestamp::as_millis),
                new.result.as_ref().map(result_json),
            ])?;
            Ok(inserted > 0)
        })
        .await
    }
}

fn stored_jobs(db: &Connection) -> Result<Vec<ScheduledJob>, Error> {
    let mut rows =
        db.prepare_cached("SELECT job, timing, progress, paused FROM schedule_jobs ORDER BY job")?;
    let mut rows = rows.query([])?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        jobs.push(ScheduledJob {
            job: row.get(0)?,
            timing: row.get(1)?,
            progress: Timestamp::from_millis(row.get(2)?),
            paused: row.get(3)?,
        });
    }
    Ok(jobs)
}

/// Changes a running occurrence, if its claim is the latest.
fn change(
    db: &Connection,
    run: &RunHandle,
    assignment: &str,
    value: &dyn rusqlite::ToSql,
) -> Result<bool, Error> {
    let sql = format!(
        "UPDATE occurrences SET {assignment} WHERE job = ?1 AND planned_at = ?2 AND epoch = ?3 AND state = 'running'"
    );
    let (planned, epoch) = (run.planned_at.as_millis(), signed(run.epoch));
    Ok(db.prepare_cached(&sql)?.execute(params![run.job, planned, epoch, value])? > 0)
}

fn find(db: &Connection, job: &str, planned_at: Timestamp) -> Result<Option<Occurrence>, Error> {
    let sql = concat!(occurrences!(), " WHERE job = ?1 AND planned_at = ?2");
    let columns =
        db.prepare_cached(sql)?.query_row(params![job, planned_at.as_millis()], columns).optional()?;
    columns.map(Occurrence::try_from).transpose()
}

fn occurrence(row: &Row<'_>) -> Result<Occurrence, Error> {
    columns(row)?.try_into()
}

fn columns(row: &Row<'_>) -> rusqlite::Result<OccurrenceColumns> {
    Ok(OccurrenceColumns {
        job: row.get(0)?,
        planned_at: row.get(1)?,
        begins_at: row.get(2)?,
        kind: row.get(3)?,
        state: row.get(4)?,
        attempt: row.get(5)?,
        holder: row.get(6)?,
        epoch: row.get(7)?,
        lease_until: row.get(8)?,
        started_at: row.get(9)?,
        ended_at: row.get(10)?,
        session: row.get(11)?,
        turn: row.get(12)?,
        note: row.get(13)?,
        called_at: row.get(14)?,
        result: row.get(15)?,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
