//! All rows, one after the other.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use talon_tests::Supervisor;
use talon_tests::interop::list::{self, Client, ServerList};
use talon_tests::interop::service::Service;
use talon_tests::interop::table::{self, ClientRow, ServerRow};
use talon_tests::interop::verdict::{Verdict, judge};
use talon_tests::interop::{client, packages, server};

use crate::choice::Choice;

/// What a row may take with its installation: a large package on a busy machine takes two minutes.
const ROW_TIMEOUT: Duration = Duration::from_mins(6);

pub(crate) async fn run(choice: &Choice) -> Result<()> {
    let ServerList { routes, servers } = list::read("servers.yaml")?;
    let clients = list::clients()?;
    let service = Service::start(routes).await?;
    let (mut server_rows, mut client_rows, mut differences) = (Vec::new(), Vec::new(), Vec::new());

    let chosen: Vec<&Value> = servers.iter().filter(|row| choice.has_server(list::name(row))).collect();
    for (index, row) in chosen.iter().enumerate() {
        eprint!("[server {}/{}] {} … ", index + 1, chosen.len(), list::name(row));
        let row = run_server(row, &servers, &service).await?;
        match &row.verdict {
            Verdict::Works => eprintln!("works, {} tools", row.report.tools),
            Verdict::KnownToFail(why) => eprintln!("fails as known: {why}"),
            Verdict::Differs(failure) => {
                eprintln!("FAILS: {failure}");
                differences.push(row.server.name.clone());
            }
        }
        server_rows.push(row);
    }

    let chosen: Vec<&Client> = clients.iter().filter(|client| choice.has_client(&client.name)).collect();
    if !chosen.is_empty() {
        let supervisor = Rc::new(client::supervisor(&client::everything(&packages()).await?).await);
        for (index, client) in chosen.iter().enumerate() {
            eprint!("[client {}/{}] {} … ", index + 1, chosen.len(), client.name);
            let (report, failures) = run_client(client, &supervisor).await;
            if failures.is_empty() {
                eprintln!("works");
            } else {
                eprintln!("FAILS: {}", failures.join("; "));
                differences.push(client.name.clone());
            }
            client_rows.push(ClientRow { client: (*client).clone(), report });
        }
    }

    if server_rows.is_empty() && client_rows.is_empty() {
        bail!("no row has that name: see tests/interop/servers.yaml and clients.yaml");
    }
    if let Some(path) = &choice.table {
        std::fs::write(path, table::markdown(&server_rows, &client_rows))
            .with_context(|| path.display().to_string())?;
    }
    if !differences.is_empty() {
        bail!(
            "{} differ from the list: {}. The reasons are above. Run one alone by --only NAME; what cannot be mended gets \
             `fails` or `lacks` with its reason in tests/interop",
            differences.len(),
            differences.join(", ")
        );
    }
    Ok(())
}

async fn run_server(row: &Value, rows: &[Value], service: &Service) -> Result<ServerRow> {
    let listed = list::server(row, &[])?;
    let report = Rc::new(RefCell::new(server::Report::default()));
    let (row, rows, address, kept) = (row.clone(), rows.to_vec(), service.address(), Rc::clone(&report));
    let failure = guarded(async move {
        let mut report = server::Report::default();
        let ran = server::run(&row, &rows, &packages(), &address, &mut report).await;
        kept.replace(report);
        ran
    })
    .await
    .err()
    .map(|error| format!("{error:#}"));
    let verdict = judge(failure.as_deref(), listed.fails.as_ref());
    Ok(ServerRow { server: listed, report: report.take(), verdict })
}

async fn run_client(listed: &Client, supervisor: &Rc<Supervisor>) -> (client::Report, Vec<String>) {
    let (row, supervisor) = (listed.clone(), Rc::clone(supervisor));
    let ran = guarded(async move {
        let home = client::install(&row, &packages()).await?;
        client::run(&row, &home, &supervisor).await
    });
    match ran.await {
        Ok(report) => {
            let differences = client::differences(listed, &report);
            (report, differences)
        }
        Err(error) => (client::Report::new(), vec![format!("{error:#}")]),
    }
}

/// Runs a row for a bounded time; a panic of the harness is the row's error.
async fn guarded<T: 'static>(row: impl Future<Output = Result<T>> + 'static) -> Result<T> {
    let task = tokio::task::spawn_local(tokio::time::timeout(ROW_TIMEOUT, row));
    match task.await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(anyhow!("it took more than {} minutes", ROW_TIMEOUT.as_secs() / 60)),
        Err(error) => {
            let panic = error.try_into_panic().map_err(|_| anyhow!("the row was cancelled"))?;
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(anyhow!("{}", said.unwrap_or("a panic without a message")))
        }
    }
}
