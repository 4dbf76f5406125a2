use super::*;

fn of(line: &str) -> Option<Result<Download, DownloadError>> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let command = words.next().unwrap();
    download(&command, &words.collect::<Vec<_>>())
}

#[test]
fn launchers_are_taken_apart() {
    for (line, registry, package, program, args) in [
        (
            "npx -y @modelcontextprotocol/server-github",
            PackageRegistry::Npm,
            "@modelcontextprotocol/server-github",
            None,
            "",
        ),
        ("npx --yes @scope/pkg@1.2.3 /data --x", PackageRegistry::Npm, "@scope/pkg@1.2.3", None, "/data --x"),
        ("npx --package=pkg@latest prog a", PackageRegistry::Npm, "pkg@latest", Some("prog"), "a"),
        ("npm exec -- pkg", PackageRegistry::Npm, "pkg", None, ""),
        (
            "uvx mcp-server-git --repository /r",
            PackageRegistry::PyPi,
            "mcp-server-git",
            None,
            "--repository /r",
        ),
        (
            "uvx --python 3.12 --from pkg[cli]==1.0 prog",
            PackageRegistry::PyPi,
            "pkg[cli]==1.0",
            Some("prog"),
            "",
        ),
        ("uv tool run pkg@2.0", PackageRegistry::PyPi, "pkg@2.0", None, ""),
        ("pipx run pkg", PackageRegistry::PyPi, "pkg", None, ""),
    ] {
        let args = args.split_whitespace().map(str::to_owned).collect();
        let program = program.map(str::to_owned);
        assert_eq!(
            of(line),
            Some(Ok(Download {
                registry,
                package: package.to_owned(),
                program,
                python: line.contains("--python").then(|| "3.12".to_owned()),
                with: Vec::new(),
                args
            })),
            "{line}"
        );
    }
    for no_launcher in ["node a.js", "uv run x", "npm start", "python -m x"] {
        assert_eq!(of(no_launcher), None, "{no_launcher}");
    }
}

#[test]
fn what_is_no_package_of_a_registry_is_not_downloaded() {
    for line in [
        "npx github:a/b",
        "npx https://a.example/x.tgz",
        "npx ./here",
        "npx file:x",
        "npx -c rm",
        "npx -p a -p b c",
        "npx",
        "npx @scope",
        "npx a@npm:evil",
        "uvx git+https://a/b",
        "uvx --with git+https://a/b y",
        "uvx --with x,./y z",
        "uvx --with x",
        "uvx ./x",
        "uvx name==1;x",
    ] {
        assert!(of(line).is_some_and(|result| result.is_err()), "{line}: {:?}", of(line));
    }
}

// Promises: MCP-37
#[test]
fn packages_that_a_server_needs_beside_it_are_installed_with_it() {
    for line in [
        "uvx --with mcp==1.30.0,extra[x] --with=c@2 a --with b",
        "uv tool run --with mcp==1.30.0,extra[x] --with c@2 a --with b",
    ] {
        let download = of(line).unwrap().unwrap();
        assert_eq!(
            (download.package.as_str(), download.args.join(" ").as_str()),
            ("a", "--with b"),
            "{line}"
        );
        let all: Vec<String> = download.requirements().collect();
        assert_eq!(all, ["a", "mcp==1.30.0", "extra[x]", "c==2"], "{line}");
    }
}
