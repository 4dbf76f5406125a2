//! Memory.

use std::collections::BTreeSet;

use talon_store::{
    Error, ForgetSelector, MemoryId, MemoryQuery, NewMemory, PageRequest, Step, Store, StoredMemory,
    Timestamp, Workflow,
};

use crate::support::{Fixture, cases};

cases![
    a_memory_is_what_it_was_made_of,
    memories_are_found_by_their_words,
    tags_and_source_narrow_a_search,
    without_a_text_the_newest_come_first,
    all_memories_are_paged_while_others_come_and_go,
    the_best_come_first_and_in_pages,
    the_same_workflow_is_counted,
    a_workflow_is_recalled_by_a_similar_request,
    the_same_workflow_of_another_is_another,
    what_is_anothers_takes_no_room,
    facts_are_not_recalled_as_workflows,
    facts_are_found_by_words_of_a_whole_request,
    memories_are_forgotten_by_id_tag_and_age,
    an_exported_memory_is_imported_elsewhere_once,
    what_no_memory_can_be_is_refused,
    two_openers_count_the_same_workflow,
];

fn fact(content: &str, tags: &[&str]) -> NewMemory {
    let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    NewMemory { content: content.into(), tags, source: "test".into(), workflow: None }
}

fn workflow(trigger: &str, steps: &[(&str, &str)]) -> NewMemory {
    let steps = steps.iter().zip(1..).map(|(&(plugin, action), order)| Step::new(plugin, action, order));
    let workflow = Workflow { trigger: trigger.into(), steps: steps.collect(), outcome: "success".into() };
    NewMemory::workflow(workflow, "test")
}

async fn keep(store: &Store, new: NewMemory) -> StoredMemory {
    store.memory().remember(new).await.unwrap().memory
}

async fn found(store: &Store, text: &str) -> Vec<String> {
    let query = MemoryQuery { text: Some(text.into()), ..MemoryQuery::default() };
    let page = store.memory().search(&query, &PageRequest::default()).await.unwrap();
    page.items.into_iter().map(|memory| memory.content).collect()
}

async fn a_memory_is_what_it_was_made_of(Fixture { store, .. }: Fixture) {
    let kept = store.memory().remember(fact("Ada likes tea\0", &["preference", "fact"])).await.unwrap();
    assert!(kept.new);
    let memory = kept.memory;
    assert_eq!((memory.content.as_str(), memory.source.as_str()), ("Ada likes tea\0", "test"));
    assert_eq!(memory.tags, BTreeSet::from(["fact".to_owned(), "preference".to_owned()]));
    assert_eq!((memory.count, memory.created_at, memory.workflow.is_none()), (1, memory.last_used, true));
    assert_eq!(store.memory().get(memory.id).await.unwrap(), Some(memory));
    assert_eq!(store.memory().get(MemoryId::generate()).await.unwrap(), None);
}

async fn memories_are_found_by_their_words(Fixture { store, .. }: Fixture) {
    let all = [
        "Der Größte heißt Łukasz",
        "Crème brûlée im Café",
        "東京の天気は晴れ",
        "서울 날씨",
        "deploys on Friday",
    ];
    for content in all {
        keep(&store, fact(content, &[])).await;
    }
    for (text, index) in [
        ("grosste", 0),
        ("LUKASZ heisst", 0),
        ("cafe creme", 1),
        ("brulee", 1),
        ("天気", 2),
        ("晴", 2),
        ("東京の天気", 2),
        ("날씨", 3),
        ("deploy", 4),
        ("fri", 4),
    ] {
        assert_eq!(found(&store, text).await, [all[index]], "{text}");
    }
    for text in ["riday", "京天", "cafe friday", "nothing"] {
        assert_eq!(found(&store, text).await, [""; 0], "{text}");
    }
}

async fn tags_and_source_narrow_a_search(Fixture { store, .. }: Fixture) {
    keep(&store, fact("tea in the morning", &["a", "b"])).await;
    keep(&store, fact("tea at noon", &["a"])).await;
    keep(&store, NewMemory { source: "other".into(), ..fact("tea at night", &["b"]) }).await;
    for (text, tags, source, count) in [
        (Some("tea"), vec![], None, 3),
        (Some("tea"), vec!["a"], None, 2),
        (Some("tea"), vec!["a", "b", "a"], None, 1),
        (None, vec!["b"], None, 2),
        (None, vec!["b"], Some("other"), 1),
        (Some("noon"), vec!["b"], None, 0),
        (None, vec!["c"], None, 0),
    ] {
        let query = MemoryQuery {
            text: text.map(Into::into),
            tags: tags.iter().copied().map(Into::into).collect(),
            source: source.map(Into::into),
        };
        let page = store.memory().search(&query, &PageRequest::default()).await.unwrap();
        assert_eq!(page.items.len(), count, "{query:?}");
    }
}

async fn without_a_text_the_newest_come_first(Fixture { store, .. }: Fixture) {
    for number in 0..5 {
        keep(&store, fact(&format!("fact {number}"), &[])).await;
    }
    let (mut all, mut request) = (Vec::new(), PageRequest::first(2));
    loop {
        let page = store.memory().search(&MemoryQuery::default(), &request).await.unwrap();
        all.extend(page.items.into_iter().map(|memory| memory.content));
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 2);
    }
    assert_eq!(all, ["fact 4", "fact 3", "fact 2", "fact 1", "fact 0"]);
}

async fn all_memories_are_paged_while_others_come_and_go(Fixture { store, .. }: Fixture) {
    let db = store.memory();
    let new = |content: String| NewMemory { content, source: "test".into(), ..NewMemory::default() };
    let mut there = Vec::new();
    for number in 0..100 {
        // Together more than fits into a page.
        there.push(keep(&store, new(format!("{number} ").repeat(16_000))).await.id);
    }
    let (mut read, mut request, mut pages) = (Vec::new(), PageRequest::first(1000), 0);
    loop {
        let page = db.search(&MemoryQuery::default(), &request).await.unwrap();
        let bytes: usize = page.items.iter().map(|memory| memory.content.len()).sum();
        assert!(bytes <= talon_store::limits::MAX_PAGE_BYTES, "{bytes}");
        read.extend(page.items.into_iter().map(|memory| memory.id));
        pages += 1;
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 1000);
        keep(&store, new("new".into())).await;
        db.forget(&ForgetSelector::Id(read[1])).await.unwrap();
    }
    there.sort_unstable();
    there.reverse();
    assert!(read == there && pages > 1, "{pages}");
}

async fn the_best_come_first_and_in_pages(Fixture { store, .. }: Fixture) {
    let filler = "and something else that has nothing to do with it ".repeat(20);
    keep(&store, fact(&format!("coffee {filler}"), &[])).await;
    keep(&store, fact("coffee coffee coffee", &[])).await;
    keep(&store, fact(&filler, &[])).await;
    let query = MemoryQuery { text: Some("coffee".into()), ..MemoryQuery::default() };
    let first = store.memory().search(&query, &PageRequest::first(1)).await.unwrap();
    assert_eq!(first.items[0].content, "coffee coffee coffee");
    let second = store.memory().search(&query, &PageRequest::after(first.next.unwrap(), 1)).await.unwrap();
    assert!(second.items[0].content.starts_with("coffee and"));
    assert_eq!(second.next, None);
}

async fn the_same_workflow_is_counted(Fixture { store, .. }: Fixture) {
    let steps = [("gitlab", "analyze_code"), ("jira", "create_issue")];
    let first = store.memory().remember(workflow("Analyze code, create issue", &steps)).await.unwrap();
    let mut again = workflow("analyze  CODE, create issue", &steps);
    again.workflow.as_mut().unwrap().outcome = "failed".into();
    let again = store.memory().remember(again).await.unwrap();
    assert!(first.new && !again.new);
    assert_eq!((again.memory.id, again.memory.count), (first.memory.id, 2));
    assert!(again.memory.last_used >= first.memory.last_used);
    assert_eq!(again.memory.workflow.as_ref().unwrap().outcome, "failed");
    assert_eq!(again.memory.created_at, first.memory.created_at);
    assert_eq!(store.memory().get(first.memory.id).await.unwrap(), Some(again.memory));
    for other in [
        workflow("analyze code, create issue", &[steps[1], steps[0]]),
        workflow("analyze code, create issue", &steps[..1]),
        workflow("analyze code", &steps),
    ] {
        assert!(store.memory().remember(other).await.unwrap().new);
    }
    let query = MemoryQuery { tags: vec!["workflow".into()], ..MemoryQuery::default() };
    assert_eq!(store.memory().search(&query, &PageRequest::default()).await.unwrap().items.len(), 4);
}

async fn a_workflow_is_recalled_by_a_similar_request(Fixture { store, .. }: Fixture) {
    let code = workflow(
        "analyze code, create issue, create PR",
        &[("gitlab", "analyze_code"), ("jira", "create_issue"), ("gitlab", "create_pr")],
    );
    let weather = workflow("tell the weather in a city", &[("weather", "forecast")]);
    let tokyo = workflow("東京の天気を教えて", &[("weather", "forecast"), ("translate", "text")]);
    let report = workflow("send the weekly report by mail", &[("sheets", "read"), ("mail", "send")]);
    let mut ids = Vec::new();
    for new in [code, weather, tokyo, report] {
        ids.push(keep(&store, new).await.id);
    }
    for (request, index) in [
        ("please analyse GitLab code, post an issue to Jira and create a PR", 0),
        ("what's the weather like in Paris?", 1),
        ("明日の東京の天気", 2),
        ("mail me the weekly reports", 3),
    ] {
        let recalled = store.memory().recall(request, None, 3).await.unwrap();
        assert_eq!(
            recalled.first().map(|first| first.memory.id),
            Some(ids[index]),
            "{request}: {recalled:#?}"
        );
        assert!(recalled.windows(2).all(|pair| pair[0].similarity >= pair[1].similarity));
    }
    for request in ["", "!!!", "zzz qqq"] {
        assert!(store.memory().recall(request, None, 3).await.unwrap().is_empty(), "{request}");
    }
    let exact = store.memory().recall("tell the weather in a city", None, 1).await.unwrap();
    assert!(exact.len() == 1 && exact[0].similarity > 0.99);
}

fn of(owner: &str, mut new: NewMemory) -> NewMemory {
    new.tags.insert(format!("sender:{owner}"));
    new
}

async fn the_same_workflow_of_another_is_another(Fixture { store, .. }: Fixture) {
    let failed = |mut new: NewMemory| {
        new.workflow.as_mut().expect("it is one").outcome = "failure".into();
        new
    };
    let deploy = || workflow("deploy the site", &[("ci", "build"), ("ci", "deploy")]);
    let ada = keep(&store, of("ada", deploy())).await;
    let bob = store.memory().remember(failed(of("bob", deploy()))).await.unwrap();
    let everybodys = store.memory().remember(deploy()).await.unwrap();
    assert!(bob.new && everybodys.new);
    let again = keep(&store, of("ada", deploy())).await;
    assert_eq!((again.id, again.count), (ada.id, 2));
    let outcome = async |id| store.memory().get(id).await.unwrap().unwrap().workflow.unwrap().outcome;
    assert_eq!(outcome(ada.id).await, "success");
    assert_eq!(outcome(bob.memory.id).await, "failure");
}

async fn what_is_anothers_takes_no_room(Fixture { store, .. }: Fixture) {
    // More than either a recall returns or an index proposes for it.
    for number in 0..250 {
        let step = format!("step{number}");
        keep(&store, of("bob", workflow("feed the otter", &[("zoo", &step)]))).await;
        keep(&store, of("bob", fact(&format!("otter {number} eats fish"), &[]))).await;
    }
    let mine = keep(&store, of("ada", workflow("feed the otter of the zoo", &[("zoo", "feed")]))).await;
    let likes = "Ada once had an otter that ate fish and much else besides, which is a long story";
    keep(&store, of("ada", fact(likes, &[]))).await;
    let all = "the otter at the river is everybody's, and that too is said in a few more words than others";
    keep(&store, fact(all, &[])).await;
    let recalled = store.memory().recall("feed the otter", Some("sender:ada"), 20).await.unwrap();
    assert_eq!(recalled.iter().map(|one| one.memory.id).collect::<Vec<_>>(), [mine.id]);
    let related = store.memory().related("otter eats fish", Some("sender:ada"), 20).await.unwrap();
    let mut contents: Vec<&str> = related.iter().map(|memory| memory.content.as_str()).collect();
    contents.sort_unstable();
    assert_eq!(contents, [likes, all]);
    assert_eq!(store.memory().recall("feed the otter", None, 20).await.unwrap().len(), 20);
}

async fn facts_are_not_recalled_as_workflows(Fixture { store, .. }: Fixture) {
    keep(&store, fact("analyze code, create issue", &["fact"])).await;
    assert!(store.memory().recall("analyze code, create issue", None, 3).await.unwrap().is_empty());
}

async fn facts_are_found_by_words_of_a_whole_request(Fixture { store, .. }: Fixture) {
    for content in [
        "Ada likes her teas black",
        "the staging server is called otter",
        "contracts are signed in ink",
        "東京の天気は晴れ",
        "Größe: 42",
    ] {
        keep(&store, fact(content, &[])).await;
    }
    keep(&store, workflow("deploy to the staging server", &[("ci", "deploy"), ("mail", "send")])).await;
    for (text, wanted) in [
        ("please make some tea for Ada", vec!["Ada likes her teas black"]),
        ("deploy it to staging, then look at the server's log", vec!["the staging server is called otter"]),
        ("what is in control?", vec![]),
        ("明日の東京は？", vec!["東京の天気は晴れ"]),
        ("welche grosse", vec!["Größe: 42"]),
        ("", vec![]),
        ("zzz", vec![]),
        ("staging tea", vec!["the staging server is called otter", "Ada likes her teas black"]),
    ] {
        let related = store.memory().related(text, None, 3).await.unwrap();
        let contents: Vec<&str> = related.iter().map(|memory| memory.content.as_str()).collect();
        assert_eq!(contents, wanted, "{text}");
    }
    assert_eq!(store.memory().related("staging tea server", None, 1).await.unwrap().len(), 1);
    let long = "x ".repeat(8 * 1024);
    assert!(matches!(store.memory().related(&long, None, 3).await, Err(Error::Invalid { .. })));
}

async fn memories_are_forgotten_by_id_tag_and_age(Fixture { store, .. }: Fixture) {
    let db = store.memory();
    let first = keep(&store, fact("tea", &["drink"])).await;
    keep(&store, fact("coffee", &["drink", "hot"])).await;
    keep(&store, fact("bread", &["food"])).await;
    assert_eq!(db.forget(&ForgetSelector::Id(first.id)).await.unwrap(), 1);
    assert_eq!(db.forget(&ForgetSelector::Id(first.id)).await.unwrap(), 0);
    assert_eq!(found(&store, "tea").await, [""; 0]);
    assert_eq!(db.forget(&ForgetSelector::Tag("drink".into())).await.unwrap(), 1);
    assert_eq!(db.forget(&ForgetSelector::Tag("drink".into())).await.unwrap(), 0);
    assert_eq!(found(&store, "bread").await, ["bread"]);
    assert_eq!(db.forget(&ForgetSelector::NotUsedSince(Timestamp::from_millis(1))).await.unwrap(), 0);
    let later = Timestamp::from_millis(Timestamp::now().as_millis() + 60_000);
    assert_eq!(db.forget(&ForgetSelector::NotUsedSince(later)).await.unwrap(), 1);
    assert!(db.search(&MemoryQuery::default(), &PageRequest::default()).await.unwrap().items.is_empty());
    // What is forgotten can be learnt again.
    keep(&store, fact("tea", &["drink"])).await;
    assert_eq!(found(&store, "tea").await, ["tea"]);
}

async fn an_exported_memory_is_imported_elsewhere_once(Fixture { store, .. }: Fixture) {
    let db = store.memory();
    let known = keep(&store, workflow("make tea", &[("kitchen", "boil")])).await;
    let text = serde_json::to_string(&known).unwrap();
    assert_eq!(serde_json::from_str::<StoredMemory>(&text).unwrap(), known);
    let plain = keep(&store, fact("tea", &[])).await;
    let text = serde_json::to_string(&plain).unwrap();
    assert_eq!(serde_json::from_str::<StoredMemory>(&text).unwrap(), plain);
    assert!(!db.import(known.clone()).await.unwrap());
    let same = StoredMemory { id: MemoryId::generate(), ..known.clone() };
    assert!(!db.import(same.clone()).await.unwrap());
    db.forget(&ForgetSelector::Id(known.id)).await.unwrap();
    let old = StoredMemory { created_at: Timestamp::from_millis(1000), count: 7, ..same };
    assert!(db.import(old.clone()).await.unwrap());
    assert_eq!(db.get(old.id).await.unwrap(), Some(old));
    assert_eq!(found(&store, "make tea").await.len(), 1);
}

async fn what_no_memory_can_be_is_refused(Fixture { store, .. }: Fixture) {
    let good = workflow("t", &[("p", "a"), ("p", "b")]);
    let broken = |change: fn(&mut Workflow)| {
        let mut new = good.clone();
        change(new.workflow.as_mut().unwrap());
        new
    };
    for new in [
        fact("", &[]),
        fact(&"x".repeat(64 * 1024 + 1), &[]),
        fact("x", &["two\nlines"]),
        fact("x", &[""]),
        fact("a workflow without steps", &["workflow"]),
        NewMemory { source: String::new(), ..fact("x", &[]) },
        broken(|workflow| workflow.trigger.clear()),
        broken(|workflow| workflow.steps.clear()),
        broken(|workflow| workflow.steps.reverse()),
        broken(|workflow| workflow.steps[0].plugin = "a\u{1}b".into()),
    ] {
        let refused = store.memory().remember(new.clone()).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{new:?}: {refused:?}");
    }
    assert!(
        store
            .memory()
            .search(&MemoryQuery::default(), &PageRequest::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let query = MemoryQuery { text: Some("?!".into()), ..MemoryQuery::default() };
    assert!(matches!(
        store.memory().search(&query, &PageRequest::default()).await,
        Err(Error::Invalid { .. })
    ));
}

async fn two_openers_count_the_same_workflow(Fixture { store, open }: Fixture) {
    let other = open.open().await.unwrap();
    let recording: Vec<_> = (0..16)
        .map(|number| {
            let memory = if number % 2 == 0 { store.memory() } else { other.memory() };
            tokio::spawn(async move { memory.remember(workflow("make tea", &[("kitchen", "boil")])).await })
        })
        .collect();
    let mut new = 0;
    for one in recording {
        new += u32::from(one.await.unwrap().unwrap().new);
    }
    assert_eq!(new, 1);
    let page = store.memory().search(&MemoryQuery::default(), &PageRequest::default()).await.unwrap();
    assert_eq!((page.items.len(), page.items[0].count), (1, 16));
    other.close().await;
}
