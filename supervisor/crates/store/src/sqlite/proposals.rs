//! Proposed jobs in SQLite.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use crate::error::Error;
use crate::limits::MAX_REJECTED_PROPOSALS;
use crate::proposal::{
    DeclaredProposals, JobProposal, JobProposals, ProposalColumns, ProposalDecision, ProposalState,
    check_declared, check_proposal,
};
use crate::time::Timestamp;

#[async_trait]
impl JobProposals for SqliteStore {
    async fn declare(&self, declared: DeclaredProposals, now: Timestamp) -> Result<Vec<JobProposal>, Error> {
        check_declared(&declared)?;
        self.write(move |db| {
            let known = stored(db)?;
            let texts: BTreeSet<(&str, &str)> =
                declared.proposals.iter().map(|new| (new.job.as_str(), new.digest.as_str())).collect();
            let is_gone = |one: &&JobProposal| {
                one.state == ProposalState::Proposed
                    && !declared.silent.contains(&one.plugin)
                    && !texts.contains(&(one.job.as_str(), one.digest.as_str()))
            };
            for gone in known.iter().filter(is_gone) {
                db.prepare_cached("DELETE FROM job_proposals WHERE job = ?1 AND digest = ?2")?
                    .execute(params![gone.job, gone.digest])?;
            }
            let sql = "INSERT INTO job_proposals (job, digest, plugin, state, proposal, proposed_at)
                VALUES (?1, ?2, ?3, 'proposed', ?4, ?5) ON CONFLICT (job, digest) DO NOTHING";
            for new in &declared.proposals {
                db.prepare_cached(sql)?.execute(params![
                    new.job,
                    new.digest,
                    new.plugin,
                    new.proposal,
                    now.as_millis()
                ])?;
            }
            let known: BTreeSet<(&str, &str)> =
                known.iter().map(|one| (one.job.as_str(), one.digest.as_str())).collect();
            let mut all = stored(db)?;
            all.retain(|one| !known.contains(&(one.job.as_str(), one.digest.as_str())));
            Ok(all)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<JobProposal>, Error> {
        self.read(stored).await
    }

    async fn decide(&self, decision: ProposalDecision, now: Timestamp) -> Result<Option<JobProposal>, Error> {
        self.write(move |db| {
            let ProposalDecision { job, digest, accept } = &decision;
            let sql =
                "UPDATE job_proposals SET state = ?3, decided_at = ?4 WHERE job = ?1 AND digest = ?2 AND state <> ?3";
            let state = decision.state().word();
            db.prepare_cached(sql)?.execute(params![job, digest, state, now.as_millis()])?;
            let found =
                stored(db)?.into_iter().find(|one| one.job == *job && one.digest == *digest);
            if found.is_some() && *accept {
                db.prepare_cached("DELETE FROM job_proposals WHERE job = ?1 AND digest <> ?2 AND state = 'accepted'")?
                    .execute(params![job, digest])?;
            }
            let sql = "DELETE FROM job_proposals WHERE state = 'rejected' AND (job, digest) NOT IN (
                SELECT job, digest FROM job_proposals WHERE state = 'rejected' ORDER BY decided_at DESC LIMIT ?1)";
            db.prepare_cached(sql)?.execute([MAX_REJECTED_PROPOSALS])?;
            Ok(found)
        })
        .await
    }

    async fn import(&self, new: JobProposal) -> Result<bool, Error> {
        check_proposal(&new)?;
        self.write(move |db| {
            let sql =
                "INSERT INTO job_proposals (job, digest, plugin, state, proposal, proposed_at, decided_at)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE ?4 <> 'accepted' OR NOT EXISTS (
                    SELECT 1 FROM job_proposals WHERE job = ?1 AND state = 'accepted')
                ON CONFLICT (job, digest) DO NOTHING";
            let inserted = db.prepare_cached(sql)?.execute(params![
                new.job,
                new.digest,
                new.plugin,
                new.state.word(),
                new.proposal,
                new.proposed_at.as_millis(),
                new.decided_at.map(Timestamp::as_millis),
            ])?;
            Ok(inserted > 0)
        })
        .await
    }
}

fn stored(db: &Connection) -> Result<Vec<JobProposal>, Error> {
    let sql = "SELECT job, digest, plugin, state, proposal, proposed_at, decided_at FROM job_proposals ORDER BY job, digest";
    let mut rows = db.prepare_cached(sql)?;
    let mut rows = rows.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(columns(row)?.try_into()?);
    }
    Ok(found)
}

fn columns(row: &Row<'_>) -> rusqlite::Result<ProposalColumns> {
    Ok(ProposalColumns {
        job: row.get(0)?,
        digest: row.get(1)?,
        plugin: row.get(2)?,
        state: row.get(3)?,
        proposal: row.get(4)?,
        proposed_at: row.get(5)?,
        decided_at: row.get(6)?,
    })
}
