//! The tasks.

/// One call, and what its result has to show.
pub(crate) struct Step {
    pub(crate) tool: &'static str,
    /// As JSON, with values in braces.
    pub(crate) arguments: &'static str,
    /// The name of a value, the text before it, and the text behind it.
    pub(crate) shows: (&'static str, &'static str, &'static str),
}

/// What is asked, and what has to come of it.
pub(crate) struct Task {
    pub(crate) ask: &'static str,
    pub(crate) steps: &'static [Step],
    /// With values in braces.
    pub(crate) answer: &'static str,
    pub(crate) expected: &'static str,
    /// A file afterwards, and its text.
    pub(crate) file: Option<(&'static str, &'static str)>,
}

const fn step(
    tool: &'static str,
    arguments: &'static str,
    shows: (&'static str, &'static str, &'static str),
) -> Step {
    Step { tool, arguments, shows }
}

/// They run in this order: some need what others made.
pub(crate) const TASKS: &[Task] = &[
    Task {
        ask: "How many nuts are in stock?",
        steps: &[step("files__read", r#"{"path":"inventory.txt"}"#, ("n", "nuts: ", "\n"))],
        answer: "{n} nuts",
        expected: "75 nuts",
        file: None,
    },
    Task {
        ask: "When does the pump start?",
        steps: &[step("files__read", r#"{"path":"readme.md"}"#, ("at", "starts at ", "."))],
        answer: "{at}",
        expected: "06:30",
        file: None,
    },
    Task {
        ask: "On which port does the server listen?",
        steps: &[step("files__read", r#"{"path":"config.ini"}"#, ("port", "port=", "\n"))],
        answer: "{port}",
        expected: "8443",
        file: None,
    },
    Task {
        ask: "Which file is in data?",
        steps: &[step("files__list", r#"{"path":"data"}"#, ("x", "people.csv", "\n"))],
        answer: "people.csv",
        expected: "people.csv",
        file: None,
    },
    Task {
        ask: "Write the port into out/port.txt",
        steps: &[
            step("files__read", r#"{"path":"config.ini"}"#, ("port", "port=", "\n")),
            step("files__write", r#"{"path":"out/port.txt","text":"{port}"}"#, ("n", "\n", " bytes")),
        ],
        answer: "{n} bytes",
        expected: "4 bytes",
        file: Some(("out/port.txt", "8443")),
    },
    Task {
        ask: "Write Ada's age into out/age.txt",
        steps: &[
            step("files__read", r#"{"path":"data/people.csv"}"#, ("age", "Ada,", "\n")),
            step(
                "files__write",
                r#"{"path":"out/age.txt","text":"Ada is {age}"}"#,
                ("x", "out/age.txt", "\n"),
            ),
        ],
        answer: "done",
        expected: "done",
        file: Some(("out/age.txt", "Ada is 36")),
    },
    Task {
        ask: "Copy what is still to do into out/open.md",
        steps: &[
            step("files__read", r#"{"path":"todo.md"}"#, ("item", "- [ ] ", "\n")),
            step("files__write", r#"{"path":"out/open.md","text":"- {item}"}"#, ("x", "out/open.md", "\n")),
        ],
        answer: "{item}",
        expected: "oil the bearing",
        file: Some(("out/open.md", "- oil the bearing")),
    },
    Task {
        ask: "Correct the port in out/port.txt to 9443",
        steps: &[
            step("files__read", r#"{"path":"out/port.txt"}"#, ("old", "8", "3")),
            step(
                "files__write",
                r#"{"path":"out/port.txt","text":"9{old}3","replace":true}"#,
                ("x", "out/port.txt", "\n"),
            ),
        ],
        answer: "done",
        expected: "done",
        file: Some(("out/port.txt", "9443")),
    },
    Task {
        ask: "What does line 399 of long.txt say?",
        steps: &[step("files__read", r#"{"path":"long.txt"}"#, ("v", "line 399: value ", "\n"))],
        answer: "{v}",
        expected: "6783",
        file: None,
    },
    Task {
        ask: "And its line 5?",
        steps: &[step("files__read", r#"{"path":"long.txt"}"#, ("v", "line 5: value ", "\n"))],
        answer: "{v}",
        expected: "85",
        file: None,
    },
    Task {
        ask: "Where is something left to do in the code?",
        steps: &[step("code__search", r#"{"pattern":"TODO"}"#, ("x", "src/lib.rs", "\n"))],
        answer: "src/lib.rs",
        expected: "src/lib.rs",
        file: None,
    },
    Task {
        ask: "Show line 377 of long.txt only",
        steps: &[step(
            "code__read_range",
            r#"{"path":"long.txt","start":377,"end":377}"#,
            ("v", "value ", "\n"),
        )],
        answer: "{v}",
        expected: "6409",
        file: None,
    },
    Task {
        ask: "Which tables are there as CSV?",
        steps: &[step("code__list_files", r#"{"glob":"**/*.csv"}"#, ("x", "data/people.csv", "\n"))],
        answer: "data/people.csv",
        expected: "data/people.csv",
        file: None,
    },
    Task {
        ask: "Where is stop defined?",
        steps: &[step("code__search", r#"{"pattern":"fn stop"}"#, ("x", "src/lib.rs", "\n"))],
        answer: "src/lib.rs",
        expected: "src/lib.rs",
        file: None,
    },
    Task {
        ask: "Which host stands beside the port?",
        steps: &[
            step("code__search", r#"{"pattern":"port="}"#, ("file", "config", ".ini")),
            step("files__read", r#"{"path":"config{file}.ini"}"#, ("host", "host=", "\n")),
        ],
        answer: "{host}",
        expected: "pump.example",
        file: None,
    },
    Task {
        ask: "What was committed last?",
        steps: &[step(
            "git__git_log",
            r#"{"repo_path":"{repository}","max_count":1}"#,
            ("x", "Oil the bearing", "\n"),
        )],
        answer: "Oil the bearing",
        expected: "Oil the bearing",
        file: None,
    },
    Task {
        ask: "Who committed it?",
        steps: &[step("git__git_log", r#"{"repo_path":"{repository}","max_count":1}"#, ("x", "Ada", "\n"))],
        answer: "Ada",
        expected: "Ada",
        file: None,
    },
    Task {
        ask: "How did the project begin?",
        steps: &[step(
            "git__git_log",
            r#"{"repo_path":"{repository}","max_count":10}"#,
            ("x", "Add the pump", "\n"),
        )],
        answer: "Add the pump",
        expected: "Add the pump",
        file: None,
    },
    Task {
        ask: "Which file is changed?",
        steps: &[step("git__git_status", r#"{"repo_path":"{repository}"}"#, ("f", "modified:", ".txt"))],
        answer: "{f}.txt",
        expected: "valve.txt",
        file: None,
    },
    Task {
        ask: "What is changed in it?",
        steps: &[step("git__git_diff_unstaged", r#"{"repo_path":"{repository}"}"#, ("x", "+closed", "\n"))],
        answer: "closed",
        expected: "closed",
        file: None,
    },
    Task {
        ask: "What was the commit before the last?",
        steps: &[step(
            "git__git_show",
            r#"{"repo_path":"{repository}","revision":"HEAD~1"}"#,
            ("x", "Fix the valve", "\n"),
        )],
        answer: "Fix the valve",
        expected: "Fix the valve",
        file: None,
    },
    Task {
        ask: "Which branches are there?",
        steps: &[step(
            "git__git_branch",
            r#"{"repo_path":"{repository}","branch_type":"local"}"#,
            ("x", "feature/", "\n"),
        )],
        answer: "main, feature/{x}",
        expected: "main, feature/valve",
        file: None,
    },
    Task {
        ask: "What differs between the last two commits?",
        steps: &[step(
            "git__git_diff",
            r#"{"repo_path":"{repository}","target":"HEAD~1"}"#,
            ("x", "+oiled", "\n"),
        )],
        answer: "oiled",
        expected: "oiled",
        file: None,
    },
    Task {
        ask: "What is noon in Kathmandu in Tokyo?",
        steps: &[step(
            "time__convert_time",
            r#"{"source_timezone":"Asia/Kathmandu","time":"12:00","target_timezone":"Asia/Tokyo"}"#,
            ("x", "15:15:00+09:00", "\n"),
        )],
        answer: "15:15",
        expected: "15:15",
        file: None,
    },
    Task {
        ask: "What is half past six UTC in Tokyo?",
        steps: &[step(
            "time__convert_time",
            r#"{"source_timezone":"UTC","time":"06:30","target_timezone":"Asia/Tokyo"}"#,
            ("x", "15:30:00+09:00", "\n"),
        )],
        answer: "15:30",
        expected: "15:30",
        file: None,
    },
    Task {
        ask: "When does the pump start in Tokyo?",
        steps: &[
            step("files__read", r#"{"path":"readme.md"}"#, ("at", "starts at ", ".")),
            step(
                "time__convert_time",
                r#"{"source_timezone":"UTC","time":"{at}","target_timezone":"Asia/Tokyo"}"#,
                ("x", "15:30:00+09:00", "\n"),
            ),
        ],
        answer: "{at} UTC is 15:30",
        expected: "06:30 UTC is 15:30",
        file: None,
    },
    Task {
        ask: "Which time is it in UTC?",
        steps: &[step("time__get_current_time", r#"{"timezone":"UTC"}"#, ("x", "+00:00", "\n"))],
        answer: "looked up",
        expected: "looked up",
        file: None,
    },
    Task {
        ask: "Read the readme with the other server",
        steps: &[step("fs__read_text_file", r#"{"path":"{root}/readme.md"}"#, ("at", "starts at ", "."))],
        answer: "{at}",
        expected: "06:30",
        file: None,
    },
    Task {
        ask: "What is in the data directory?",
        steps: &[step("fs__list_directory", r#"{"path":"{root}/data"}"#, ("x", "people.csv", "\n"))],
        answer: "people.csv",
        expected: "people.csv",
        file: None,
    },
    Task {
        ask: "Find all CSV files",
        steps: &[step(
            "fs__search_files",
            r#"{"path":"{root}","pattern":"**/*.csv"}"#,
            ("x", "/data/people", ".csv"),
        )],
        answer: "people.csv",
        expected: "people.csv",
        file: None,
    },
    Task {
        ask: "How big is config.ini?",
        steps: &[step("fs__get_file_info", r#"{"path":"{root}/config.ini"}"#, ("n", "size: ", "\n"))],
        answer: "{n} bytes",
        expected: "37 bytes",
        file: None,
    },
    Task {
        ask: "How many bolts, and which port?",
        steps: &[step(
            "fs__read_multiple_files",
            r#"{"paths":["{root}/inventory.txt","{root}/config.ini"]}"#,
            ("port", "port=", "\n"),
        )],
        answer: "{port}",
        expected: "8443",
        file: None,
    },
    Task {
        ask: "Draw the tree of the directory",
        steps: &[step("fs__directory_tree", r#"{"path":"{root}"}"#, ("x", "lib.rs", "\n"))],
        answer: "src/lib.rs",
        expected: "src/lib.rs",
        file: None,
    },
    Task {
        ask: "File a ticket: the valve leaks",
        steps: &[step(
            "jira__create_issue",
            r#"{"title":"The valve leaks","description":"At the lower flange"}"#,
            ("n", "filed as #", "\n"),
        )],
        answer: "#{n}",
        expected: "#1",
        file: None,
    },
    Task {
        ask: "Which tickets are open?",
        steps: &[step("jira__list_issues", r#"{}"#, ("x", "The valve leaks", "\n"))],
        answer: "The valve leaks",
        expected: "The valve leaks",
        file: None,
    },
    Task {
        ask: "Where does the valve leak?",
        steps: &[
            step("jira__list_issues", r#"{}"#, ("x", "The valve leaks", "\n")),
            step("jira__get_issue", r#"{"number":1}"#, ("x", "At the lower flange", "\n")),
        ],
        answer: "At the lower flange",
        expected: "At the lower flange",
        file: None,
    },
    Task {
        ask: "File a ticket for what is to do",
        steps: &[
            step("files__read", r#"{"path":"todo.md"}"#, ("item", "- [ ] ", "\n")),
            step("jira__create_issue", r#"{"title":"{item}"}"#, ("n", "filed as #", "\n")),
        ],
        answer: "#{n}: {item}",
        expected: "#2: oil the bearing",
        file: None,
    },
    Task {
        ask: "Note that the key is under the mat",
        steps: &[step("notes__add", r#"{"text":"The key is under the mat"}"#, ("n", "kept as note ", "\n"))],
        answer: "{n}",
        expected: "1",
        file: None,
    },
    Task {
        ask: "Where is the key?",
        steps: &[step("notes__list", r#"{}"#, ("x", "The key is ", "\""))],
        answer: "{x}",
        expected: "under the mat",
        file: None,
    },
    Task {
        ask: "Remove that note",
        steps: &[step("notes__remove", r#"{"number":1}"#, ("x", "removed: The key", "\n"))],
        answer: "removed",
        expected: "removed",
        file: None,
    },
    Task {
        ask: "What is the pump rated?",
        steps: &[step("web__fetch", r#"{"url":"{url}/"}"#, ("kw", "rated ", " kW"))],
        answer: "{kw} kW",
        expected: "11 kW",
        file: None,
    },
    Task {
        ask: "How often is it greased, says its manual?",
        steps: &[
            step("web__fetch", r#"{"url":"{url}/"}"#, ("x", "/manual", "\n")),
            step("web__fetch", r#"{"url":"{url}/manual"}"#, ("d", "every ", " days")),
        ],
        answer: "every {d} days",
        expected: "every 40 days",
        file: None,
    },
];
