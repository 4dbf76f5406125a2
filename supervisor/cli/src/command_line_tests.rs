//! Tests of the whole command line: what parses, what does not, and that everything has a help text.

use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

// Promises: CLI-14
#[test]
fn what_the_help_shows_parses() {
    for line in [
        "talon serve",
        "talon serve --plugin-dir ./plugins --runtime-dir /tmp/talon --set guard.timeout=10s",
        "talon call hello.greet name=World",
        "talon call hello.greet name=a=b --raw --timeout 5s --context session_id=1 --call-id x",
        "talon call hello.greet --arg-file text=- --output json",
        "talon setup",
        "talon watch",
        "talon watch --dry-run --file watch.yaml",
        "talon watch --check",
        "talon shell-init bash",
        "talon setup --yes --ollama-model qwen3:8b",
        "talon ask hello",
        "talon ask hello @a.rs @b.rs --file c.rs",
        "talon ask - --schema answer.json --session 01K0 --model haiku --thinking low --timeout 2m",
        "talon ask hello --tools git.* --tools files.read --no-wait --quiet",
        "talon ask hello --no-tools --output json --stream",
        "talon chat",
        "talon chat -c --model haiku",
        "talon chat --pick",
        "talon chat --session 01K0 --model haiku --thinking off --tools git.*",
        "talon session list --all --channel cli --limit 10",
        "talon session ls",
        "talon session show 01K0 --all",
        "talon session resume 01K0",
        "talon session compact 01K0 --keep 2",
        "talon session delete 01K0 01K1 --yes",
        "talon memory list --tag workflow",
        "talon memory search tea",
        "talon memory show 01K0",
        "talon memory forget 01K0",
        "talon memory forget --unused-for 90d --yes",
        "talon model list",
        "talon approval list --all --everybody --session 01K0",
        "talon approval show 01K0",
        "talon approval approve 01K0 --yes",
        "talon approval deny 01K0 --reason no",
        "talon approval approve 01K0 --scope always --argument command=make",
        "talon approval answer 01K0 red",
        "talon approval rules --everybody",
        "talon approval revoke 01K0",
        "talon forget anna --yes",
        "talon gateway open",
        "talon gateway open --scope operate,admin",
        "talon token create --scope chat --name laptop",
        "talon token create --scope chat,channel --channel telegram",
        "talon token create --scope chat --session 01K0 --expires 30d --output json",
        "talon token ls",
        "talon token revoke 0123456789ab",
        "talon event list",
        "talon event ls --source host --after 1780000000042 --follow --output json",
        "talon event list --source all",
        "talon event watch --plugin hello --count 1",
        "talon event watch --follow",
        "talon plugin list",
        "talon plugin ls",
        "talon plugin show hello",
        "talon plugin start hello",
        "talon plugin stop hello",
        "talon plugin restart hello",
        "talon plugin refresh hello",
        "talon plugin logs hello -f --tail 20",
        "talon events --plugin hello --count 1",
        "talon events --follow",
        "talon status --check",
        "talon top",
        "talon top --interval 500ms --sort cpu --filter git",
        "talon top --once --output json",
        "talon status --socket /run/talon/host.sock",
        "talon state list",
        "talon state ls notes --prefix draft/",
        "talon state get notes draft/1 --raw",
        "talon state set notes greeting hello",
        "talon state set notes number -1",
        "talon state set notes seen -",
        "talon state set notes picture --file picture.png",
        "talon state delete notes draft/1",
        "talon state purge notes --yes",
        "talon export ./state --overwrite --only plugins",
        "talon import ./state --dry-run --only agent",
        "talon backup today.tar --overwrite",
        "talon backup --to valkey.store monday --only plugins",
        "talon backup --to valkey.store --list",
        "talon restore --from valkey.store monday --check",
        "talon restore today.tar --check --only plugins",
        "talon config check --config talon.yaml",
        "talon config check --skip-plugins",
        "talon config show",
        "talon config reference",
        "talon config patch agent.turn.iterations=36 log.level=debug --dry-run",
        "talon config patch --unset log.level --revision 3f0c",
        "talon config patch --file -",
        "talon config history --limit 5",
        "talon doctor",
        "talon exec ./hello greet name=World --config-json {}",
        "talon exec ./hello --list",
        "talon exec ./hello --cookie A=b --service x.v1.Y --entry dialect=mcp --entry sandbox.network=full --list",
        "talon conformance ./hello",
        "talon conformance ./hello --report junit --only start --only execute.echo-id --skip jail.strict",
        "talon conformance --plugin git --config talon.yaml --allow-calls",
        "talon conformance --list --output json",
        "talon new python my-tool",
        "talon new go my-tool ./plugins/my-tool",
        "talon new node my-tool --no-install",
        "talon new rust my-tool --sdk ../talon/sdk",
        "talon new lua urgent ./scripts",
        "talon lua check",
        "talon lua check a.lua ./scripts --library utf8 --output json",
        "talon lua test ./scripts --report junit",
        "talon lua run a.lua pre_hook --message -hi --metadata a=b --kv n=1 --llm de --phase post",
        "talon lua repl",
        "talon lua repl a.lua --message Hello --library bit32",
        "talon jail run -- ls -l --color",
        "talon jail run --profile ./own.toml --network loopback --read /a --read /b --write /c --uid 70000 -- x",
        "talon jail run --memory 256MiB --mode best-effort --tmp-exec --report --env A=b x -y",
        "talon jail profiles",
        "talon jail profiles strict --output json",
        "talon mcp",
        "talon mcp --allow git --allow files__read_* --deny git__push --own --config x.yaml",
        "talon mcp import mcp.json --grant-write",
        "talon mcp --http 127.0.0.1:8400 --token-file token --allowed-host mcp.example.org",
        "talon mcp login issues --client-id 1 --scope read",
        "talon mcp login issues --remove",
        "talon mcp login issues --device --client-id 1",
        "talon mcp logout issues",
        "talon mcp import mcp.json --write talon.yaml --install ./mcp --output json",
        "talon completions bash",
        "talon man /tmp/man",
        "talon --color never --output json status",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).err().unwrap());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (line, kind) in [
        ("talon", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
        ("talon fly", ErrorKind::InvalidSubcommand),
        ("talon call", ErrorKind::MissingRequiredArgument),
        ("talon call hello", ErrorKind::ValueValidation),
        ("talon call hello.greet name", ErrorKind::ValueValidation),
        ("talon call hello.greet --timeout 0s", ErrorKind::ValueValidation),
        ("talon ask", ErrorKind::MissingRequiredArgument),
        ("talon ask hello --thinking hard", ErrorKind::InvalidValue),
        ("talon ask hello --no-tools --tools git.*", ErrorKind::ArgumentConflict),
        ("talon session list --limit 0", ErrorKind::ValueValidation),
        ("talon session delete", ErrorKind::MissingRequiredArgument),
        ("talon lua run a.lua hok", ErrorKind::InvalidValue),
        ("talon lua run a.lua filter --kv n", ErrorKind::ValueValidation),
        ("talon lua test --report html", ErrorKind::InvalidValue),
        ("talon memory forget", ErrorKind::MissingRequiredArgument),
        ("talon memory forget 01K0 --tag workflow", ErrorKind::ArgumentConflict),
        ("talon plugin logs hello --tail 0", ErrorKind::ValueValidation),
        ("talon exec ./hello", ErrorKind::MissingRequiredArgument),
        ("talon state list --prefix a", ErrorKind::MissingRequiredArgument),
        ("talon state set notes greeting", ErrorKind::MissingRequiredArgument),
        ("talon state set notes greeting hello --file x", ErrorKind::ArgumentConflict),
        ("talon export", ErrorKind::MissingRequiredArgument),
        ("talon backup x --only everything", ErrorKind::InvalidValue),
        ("talon backup --list", ErrorKind::MissingRequiredArgument),
        ("talon backup --to valkey.store x --list", ErrorKind::ArgumentConflict),
        ("talon exec ./hello greet --list", ErrorKind::ArgumentConflict),
        ("talon conformance", ErrorKind::MissingRequiredArgument),
        ("talon conformance ./hello --plugin hello", ErrorKind::ArgumentConflict),
        ("talon conformance ./hello --action =", ErrorKind::ValueValidation),
        ("talon jail run", ErrorKind::MissingRequiredArgument),
        ("talon jail run --uid 0 -- ls", ErrorKind::ValueValidation),
        ("talon jail run --network all -- ls", ErrorKind::InvalidValue),
        ("talon mcp --allow Git", ErrorKind::ValueValidation),
        ("talon mcp import", ErrorKind::MissingRequiredArgument),
        ("talon mcp --token-file token", ErrorKind::MissingRequiredArgument),
        ("talon mcp --http localhost", ErrorKind::ValueValidation),
        ("talon mcp login issues --remove --scope read", ErrorKind::ArgumentConflict),
        ("talon mcp login issues --remove --device", ErrorKind::ArgumentConflict),
        ("talon mcp logout", ErrorKind::MissingRequiredArgument),
        ("talon mcp --own import x", ErrorKind::ArgumentConflict),
        ("talon status --output xml", ErrorKind::InvalidValue),
    ] {
        assert_eq!(parse(line).err().map(|error| error.kind()), Some(kind), "{line}");
    }
}

// Promises: CLI-14
#[test]
fn every_verb_says_what_it_does() {
    fn walk(command: &clap::Command, path: &str) {
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            assert!(verb.get_about().is_some(), "{path} has no help");
            for argument in verb.get_arguments() {
                assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
            }
            walk(verb, &path);
        }
    }
    walk(&Cli::command(), "talon");
}

#[test]
fn colour_of_help_follows_the_flag_before_there_is_a_command_line() {
    let args = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    assert_eq!(help_color(&args("talon --color never --help")), ColorChoice::Never);
    assert_eq!(help_color(&args("talon --color=always")), ColorChoice::Always);
    assert_eq!(help_color(&args("talon call a.b -- --color=always")), ColorChoice::Auto);
    assert_eq!(help_color(&args("talon --color")), ColorChoice::Auto);
}
