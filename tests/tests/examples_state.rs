//! The examples that keep state, each under a real supervisor: what they counted outlives their process, and
//! none sees another's.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::Outcome;
use talon_tests::{Builder, Supervisor, example, skip, target};

const QUICK: &str = "backoff_initial: 10ms\nbackoff_max: 50ms";

/// Skips by name what was not staged for want of its language's tools.
fn is_missing(test: &str, name: &str) -> bool {
    let missing = !target().join("plugins").join(name).join(".stamp").exists();
    if missing {
        skip(
            test,
            &format!("{name} is not staged: tests/scripts/deps.sh test, then plugins-examples/stage.sh"),
        );
    }
    missing
}

async fn said(supervisor: &Supervisor, plugin: &str, action: &str, args: &[(&str, &str)]) -> String {
    let answer = supervisor.client.call(plugin, action, args).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{plugin}.{action}: {answer:?}");
    answer.content
}

async fn killed_and_back(supervisor: &Supervisor, plugin: &str) {
    let old = supervisor.client.plugin(plugin).await.instances[0].pid;
    kill(Pid::from_raw(old.cast_signed()), Signal::SIGKILL).expect("it runs");
    let back = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].pid != old;
    supervisor.client.wait_for(plugin, "back", back).await;
}

async fn goes_on_counting(plugin: &str) {
    let supervisor = Builder::new().linked(&example(plugin), plugin).start().await;
    let name = [("name", "visits")];
    for count in ["1", "2"] {
        assert_eq!(said(&supervisor, plugin, "increment", &name).await, count);
    }
    killed_and_back(&supervisor, plugin).await;
    assert_eq!(said(&supervisor, plugin, "increment", &name).await, "3");
    assert_eq!(said(&supervisor, plugin, "reset", &name).await, "0");
    killed_and_back(&supervisor, plugin).await;
    assert_eq!(said(&supervisor, plugin, "increment", &name).await, "1");
}

// Promises: STATE-26
#[tokio::test]
async fn a_counter_in_python_goes_on() {
    if !is_missing("a_counter_in_python_goes_on", "counter-py") {
        goes_on_counting("counter-py").await;
    }
}

// Promises: STATE-26
#[tokio::test]
async fn a_counter_in_go_goes_on() {
    if !is_missing("a_counter_in_go_goes_on", "counter-go") {
        goes_on_counting("counter-go").await;
    }
}

// Promises: STATE-26
#[tokio::test]
async fn a_counter_in_node_goes_on() {
    if !is_missing("a_counter_in_node_goes_on", "counter-node") {
        goes_on_counting("counter-node").await;
    }
}

// Promises: STATE-26
#[tokio::test]
async fn notes_are_there_after_the_end() {
    let supervisor = Builder::new().plugin("notes", &example("notes"), &[], QUICK).start().await;
    let kept = said(&supervisor, "notes", "add", &[("text", "buy milk")]).await;
    assert_eq!(kept, "kept as note 1");
    killed_and_back(&supervisor, "notes").await;
    let list = said(&supervisor, "notes", "list", &[]).await;
    assert!(list.contains("buy milk"), "{list}");
    assert_eq!(said(&supervisor, "notes", "remove", &[("number", "1")]).await, "removed: buy milk");
}

/// The same program under two names is two plugins; its instances under one name are one.
#[tokio::test]
async fn plugins_do_not_see_each_others_and_instances_share() {
    let notes = example("notes");
    let supervisor = Builder::new()
        .plugin("mine", &notes, &[], QUICK)
        .plugin("yours", &notes, &[], &format!("{QUICK}\ninstances: 2"))
        .start()
        .await;
    assert_eq!(said(&supervisor, "mine", "add", &[("text", "my secret")]).await, "kept as note 1");
    // From both of its instances at once; a list that each kept for itself would give numbers twice.
    let add = || said(&supervisor, "yours", "add", &[("text", "of yours")]);
    let (a, b, c, d) = tokio::join!(add(), add(), add(), add());
    let mut numbers = [a, b, c, d];
    numbers.sort();
    assert_eq!(numbers, ["kept as note 1", "kept as note 2", "kept as note 3", "kept as note 4"]);
    let list = said(&supervisor, "yours", "list", &[]).await;
    assert!(list.contains("of yours") && !list.contains("my secret"), "{list}");
    let list = said(&supervisor, "mine", "list", &[]).await;
    assert!(list.contains("my secret") && !list.contains("of yours"), "{list}");
}
