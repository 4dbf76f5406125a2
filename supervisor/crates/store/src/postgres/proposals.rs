//! Proposed jobs in PostgreSQL.

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::PostgresStore;
use crate::error::Error;
use crate::limits::MAX_REJECTED_PROPOSALS;
use crate::proposal::{
    DeclaredProposals, JobProposal, JobProposals, NewProposal, ProposalColumns, ProposalDecision,
    check_declared, check_proposal,
};
use crate::time::Timestamp;

/// The columns that [`proposal`] reads.
macro_rules! columns {
    () => {
        "job, digest, plugin, state, proposal, proposed_at, decided_at"
    };
}

#[async_trait]
impl JobProposals for PostgresStore {
    async fn declare(&self, declared: DeclaredProposals, now: Timestamp) -> Result<Vec<JobProposal>, Error> {
        check_declared(&declared)?;
        let mut client = self.client().await?;
        let column = |of: fn(&NewProposal) -> &String| -> Vec<String> {
            declared.proposals.iter().map(|new| of(new).clone()).collect()
        };
        let (jobs, digests) = (column(|new| &new.job), column(|new| &new.digest));
        let (plugins, texts) = (column(|new| &new.plugin), column(|new| &new.proposal));
        let stored = async {
            let transaction = client.transaction().await?;
            let sql = "DELETE FROM talon.job_proposals WHERE state = 'proposed' AND plugin <> ALL ($1)
                AND (job, digest) NOT IN (SELECT * FROM unnest($2::text[], $3::text[]))";
            transaction.execute(sql, &[&declared.silent, &jobs, &digests]).await?;
            // In one order, so that two supervisors do not wait for each other's rows.
            let sql = concat!(
                "INSERT INTO talon.job_proposals (job, digest, plugin, state, proposal, proposed_at)
                SELECT job, digest, plugin, 'proposed', proposal, $5
                FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS new (job, digest, plugin, proposal)
                ORDER BY job, digest ON CONFLICT (job, digest) DO NOTHING RETURNING ",
                columns!()
            );
            let rows = transaction.query(sql, &[&jobs, &digests, &plugins, &texts, &now.as_millis()]).await?;
            let new = rows.iter().map(proposal).collect::<Result<Vec<_>, _>>()?;
            self.commit(transaction, 1).await?;
            Ok(new)
        };
        self.inspect_result(stored.await)
    }

    async fn list(&self) -> Result<Vec<JobProposal>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = concat!(
                "SELECT ",
                columns!(),
                " FROM talon.job_proposals ORDER BY job COLLATE \"C\", digest"
            );
            let sql = client.prepare_cached(sql).await?;
            client.query(&sql, &[]).await?.iter().map(proposal).collect()
        };
        self.inspect_result(found.await)
    }

    async fn decide(&self, decision: ProposalDecision, now: Timestamp) -> Result<Option<JobProposal>, Error> {
        let mut client = self.client().await?;
        let decided = async {
            let transaction = client.transaction().await?;
            // Decisions about a job take turns, so that not two of its texts are accepted at once.
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended('talon proposal ' || $1, 0))";
            transaction.execute(lock, &[&decision.job]).await?;
            let ProposalDecision { job, digest, accept } = &decision;
            let sql = "UPDATE talon.job_proposals SET state = $3, decided_at = $4
                WHERE job = $1 AND digest = $2 AND state <> $3";
            let state = decision.state().word();
            transaction.execute(sql, &[job, digest, &state, &now.as_millis()]).await?;
            let sql =
                concat!("SELECT ", columns!(), " FROM talon.job_proposals WHERE job = $1 AND digest = $2");
            let found = transaction.query_opt(sql, &[job, digest]).await?;
            if found.is_some() && *accept {
                let sql =
                    "DELETE FROM talon.job_proposals WHERE job = $1 AND digest <> $2 AND state = 'accepted'";
                transaction.execute(sql, &[job, digest]).await?;
            }
            let sql = "DELETE FROM talon.job_proposals WHERE state = 'rejected' AND (job, digest) NOT IN (
                SELECT job, digest FROM talon.job_proposals WHERE state = 'rejected' ORDER BY decided_at DESC LIMIT $1)";
            transaction.execute(sql, &[&i64::from(MAX_REJECTED_PROPOSALS)]).await?;
            self.commit(transaction, 1).await?;
            found.as_ref().map(proposal).transpose()
        };
        self.inspect_result(decided.await)
    }

    async fn import(&self, new: JobProposal) -> Result<bool, Error> {
        check_proposal(&new)?;
        let mut client = self.client().await?;
        let imported = async {
            let transaction = client.transaction().await?;
            let sql = "INSERT INTO talon.job_proposals (job, digest, plugin, state, proposal, proposed_at, decided_at)
                SELECT $1, $2, $3, $4, $5, $6, $7 WHERE $4::text <> 'accepted' OR NOT EXISTS (
                    SELECT 1 FROM talon.job_proposals WHERE job = $1 AND state = 'accepted')
                ON CONFLICT (job, digest) DO NOTHING";
            let inserted = transaction
                .execute(
                    sql,
                    &[
                        &new.job,
                        &new.digest,
                        &new.plugin,
                        &new.state.word(),
                        &new.proposal,
                        &new.proposed_at.as_millis(),
                        &new.decided_at.map(Timestamp::as_millis),
                    ],
                )
                .await?;
            self.commit(transaction, 1).await?;
            Ok(inserted > 0)
        };
        self.inspect_result(imported.await)
    }
}

fn proposal(row: &Row) -> Result<JobProposal, Error> {
    ProposalColumns {
        job: row.try_get(0)?,
        digest: row.try_get(1)?,
        plugin: row.try_get(2)?,
        state: row.try_get(3)?,
        proposal: row.try_get(4)?,
        proposed_at: row.try_get(5)?,
        decided_at: row.try_get(6)?,
    }
    .try_into()
}
