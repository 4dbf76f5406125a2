//! What the pages say beside the tables and schemas.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{EventKind, Role};

pub(super) struct Texts {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) example: &'static str,
    /// What becomes of an answer.
    pub(super) answers: Cow<'static, str>,
}

const VERDICTS: &str = "\
## What becomes of the verdict

| verdict | needs | effect |
|---|---|---|
| `pass` | | the message goes on byte for byte |
| `annotate` | `may: [annotate]` | the message goes on byte for byte; `metadata` is noted in the journal, and given to later entries that list the keys |
| `replace` | `may: [replace]` | `message` takes its place, sanitized as every text of a plugin; the original stays in the journal |
| `drop` | `may: [drop]` | it goes no further, and the person is told the reason |

A verdict that the entry does not allow, an answer that is none, was cut or left out, an error of the plugin and a passed
deadline are failures: with `on_failure: closed` the turn ends with the error `hook_failed`, with `open` it goes on as if the
entry were not there, and a notice says so. A text can grant nothing: it is a message, whatever stands in it.";

const DELIVERY: &str = "\
## What becomes of the answer

| status | effect |
|---|---|
| `delivered` | it is done |
| `retry` | it is tried again, later each time, `retry_after_seconds` at the earliest, until `give_up_after` or `retries` ends it |
| `refused` | it is not tried again |

A call that fails, and an answer that is none of these, count as `retry`. An action that is called by a template and
answers without an error in another form has delivered. What was refused or given up is kept, and shown with its reason by `talon notification list`.
An attempt may come twice after a crash: `event.id` is then the same, and a receiver that knows it drops it.

## Kinds of events

Each event has the fields of its kind, except those that have no value: an event of no session has no `session`, and a day's budget no
`sender`.

| kind | severity | fields | when |
|---|---|---|---|
";

const TASK: &str = "\
## What becomes of the answer

The answer is free. Text and structured content are kept in the job's history, up to a limit: see `talon schedule history`. A
call that fails is tried again, if the job says so with `retries`; `run.id` is the same in each attempt, so that an action can
tell whether it did its work already. An action that does not declare the role gets the entry's `args` alone, with placeholders
over `run`.

An action may also propose the jobs that it would like to have ([jobs that plugins propose](../schedule.md#jobs-that-plugins-propose)):
`propose_job` in Rust, `jobs` in Python, `proposedJobs` in Node, `Propose` in Go, and the table `schedule` of a Lua script. Nothing runs
before the operator accepts it.";

const AUTH: &str = "\
## What becomes of the answer

`accepted` lets the request in as `gw:<name of the entry>/<subject>`, with what `scopes` of the entry grants for the scopes of the
answer, until `expires_unix_ms`. An answer holds for further requests with the same credential for a minute, and for an hour for what is
open, such as a WebSocket: then its client shows the credential anew. Everything else refuses the request, and its sender is not told why: `rejected`, an answer
that is none, one without a subject or without a scope that the entry lists, an error of the plugin. A rejection holds for 5 seconds.
A provider that cannot be asked now, because it is not there or passes its deadline, rejects nobody: unless another one accepts the
credential, the request is answered with 503. The credential is written into no log, no audit record and no error.

A token of Talon's own (`talon_…`) is never shown to a provider. A caller that a provider knows is a program, not a person: it decides
no approvals unless the entry grants `approve`.";

const ROUTE: &str = "\
## What becomes of the answer

Status, body and the headers that the schema lists are passed on. A call that fails and an answer that is none are answered with
502 and an id to look for in the log, a passed deadline with 504, and nothing of the plugin's error is passed on. An action that
is called by a template and answers in another form than the role's answers with status 200; its body is its structured answer, or
else its text. A request is
authenticated and its scope checked before the action is called.

A page that an action answers with is shown without scripts, in a sandbox of no origin.";

const STORAGE: &str = "\
## What becomes of the answer

A plugin's read or write is answered by what the backend says, and by nothing else: there is no second engine, and no cache.

| operation | outcomes |
|---|---|
| `get` | `found` with `value` and `revision`, `absent` |
| `set` | `stored` with the new `revision`, `conflict`, `full` |
| `delete` | `deleted`, `conflict` |
| `scan` | `page` with `items`, and `more` if there are further ones |
| each | `unavailable`, `refused` |

- **`stored` and `deleted` are promises**: the change survives the end of every process and a power cut. talon-state acknowledges a
  plugin's write when the backend said so, and never before.
- **Each write is a comparison.** `set` and `delete` happen only if the key's revision is `expected` (a `set` without it: only if the
  key is absent), and of several with the same one, one happens. A revision never comes back for a key.
- **A page is in the order of the keys' bytes**, behind `after`. A scan while others write has every key that was there all the time.
- An answer that is none, a wrong digest, an error and a passed deadline leave open whether a write was done. talon-state then makes
  the same write again, for at most 12 seconds. If that ends in a `conflict`, it reads the key and tells its own write by the number
  that it put into the value. A plugin that gave up meanwhile does not learn the outcome; until it is known, no other write to that
  key begins.
- An operation that is not known is answered with an error.

## What it sees

**A storage backend sees the state of every plugin**, keys and values, and can change them. Whose key is whose, quotas and pages of
plugins are talon-state's: a key begins with the plugin's name, and the value begins with a number of the write and a digest of key
and value, so that damage and another key's value are noticed. Its plugin has no state socket of its own.

What cannot be noticed while it runs: a backend that acknowledges a write and forgets it, or that gives an older value of a key together
with the revision that it had. Nobody else has a copy to compare. `talon conformance` finds one that does so always.

`talon conformance` checks such an action; `talon extension test storage_backend ACTION` reads a key of it, as an administrator.";

const CHANNEL: &str = "\
## What its plugin tells

A channel's plugin tells [events](event-source.md), so it needs `events` in its entry:

| topic | `details` | fields |
|---|---|---|
| `channel.message` | the text; may be empty beside a file | `conversation` (where an answer goes), `sender_id`, `sender_name`, `group_id` (left out in a direct conversation), `mentioned` (`true` if the service marks the agent as addressed), `file_1` to `file_8` |
| `channel.button` | | the same without `mentioned`, and `button`: the id of the button that was pressed |
| `channel.unsupported` | what it was, such as `edits of messages` | as `channel.message`, without files: the agent says in the conversation that it is not passed on |
| `channel.closed` | | none: the plugin has started, and asks to be opened |

A file of a message is `{\"id\": \"…\", \"name\": \"plan.pdf\", \"bytes\": 70000}`, as JSON of at most 512 bytes; `bytes` may be left out. The id is
for the plugin: with it the agent fetches the file (`fetch`) when the message's turn begins, in pieces of at most 512 KiB, within `agent.media`.
Images go to models that see; other files are attachments. Of one that cannot be had the model and the person are told why.

The id of an event is the message's own, so that one that is told twice is one turn. A text that is longer than an event takes is for the
plugin to refuse, where its sender sees it.

## Who may speak, and as whom

- A direct message goes to the one main session of `gw:NAME/sender_id`, a group's to the shared session of `gw:NAME/group:ID`, with the
  name of who speaks, which the model sees as data. `agent.identities` links senders of several channels.
- Only who is listed in `senders` gets a turn, and in groups only where `groups` lists the group and the message is for the agent
  (`activation`). What is for nobody is dropped, counted in the log, and reaches no model.
- In a group a call has to be allowed to the group and to who spoke, by `agent.allow.senders`.
- A call that needs approval is shown with `Allow` and `Deny`. A button counts as its sender: in a direct conversation one of `approve`, in
  a group one of `agent.groups.GROUP.approvers`. A text never decides an approval; it answers a question of the agent's.

## What it can

The answer to `open` lists in `supports` what the channel can beside sending texts:

| | |
|---|---|
| `typing` | it shows that an answer is being written: while a turn runs it is asked to every 4 s |

A session whose `verbose` is on has its calls shown in the conversation, with arguments and results.

## Commands

A message that begins with one of these is no message to the model: it is carried out, and answered, at once. What is set holds for the conversation
in which it was written: the person's own session, or their group's. It holds from the next turn that begins, so also for messages that were written
before and still wait. A mention of the agent may stand before a command, as in `@talon /model`: by one of its `names`, or by any name where the
service marks the message as for the agent. Slack's own program takes every text that begins with `/`: write the mention before it, or a space. With a
name behind it, `/model@its_name`, a command is one only where the service marks it so: else it is another bot's.

In a group everybody may look, and who is listed in `agent.groups.GROUP.approvers` may set. Each change is in the audit log.

| | |
|---|---|
| `/model`, `/model NAME`, `/model default` | the model that answers, by a name of `talon model list` or as a tier (`talon/cheap`); an unknown name is answered with those there are |
| `/thinking off`, `low`, `medium`, `high`, `default` | how long the model thinks |
| `/verbose on`, `/verbose off` | whether calls are shown, with arguments and results |

## What becomes of the answer

| status | effect |
|---|---|
| `delivered` | it is done; with `sent_bytes` less than the text has, the rest is sent by another call |
| `retry` | it is tried again, later each time, `retry_after_seconds` at the earliest, until `give_up_after` |
| `refused` | it is not tried again, and the log says why |

A call that fails, and an answer that is none of these, count as `retry`. Answers are kept on the disk until they are sent, and sent in their
order. An attempt may come twice after a crash: `id` is then the same.

Messages that wait are on the disk, too: 1,024 of all channels, and 32 of one conversation. One more of a conversation is told that it is too
many; at the other bound events wait in their plugin.";

fn kinds() -> String {
    let mut table = DELIVERY.to_owned();
    for kind in EventKind::ALL {
        let fields: Vec<String> = kind.fields().iter().map(|field| format!("`{field}`")).collect();
        // Severities are words.
        let severity = serde_json::to_value(kind.severity()).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| `{kind}` | {} | {} | {} |",
            severity.as_str().unwrap_or_default(),
            fields.join(", "),
            kind.when()
        );
    }
    table.truncate(table.trim_end().len());
    table
}

pub(super) fn texts(role: Role) -> Texts {
    match role {
        Role::Filter => Texts {
            title: "Filter",
            about: "A filter looks at every message before everything else, and lets it pass, annotates it or drops it. It never changes \
                    it. A dropped message reaches no model, no memory and no other hook.",
            example: "extensions:\n  filters:\n    - { action: spam.check, may: [drop] }\n",
            answers: VERDICTS.into(),
        },
        Role::RequestHook => Texts {
            title: "Request hook",
            about: "A request hook looks at every message before the agent works on it. It may annotate it, put a refined one in its \
                    place, or drop it. Hooks run in the order of the configuration, each on what the one before made of it.",
            example: "extensions:\n  request_hooks:\n    - { action: pii.scan, may: [annotate, replace, drop], deadline: 2s }\n",
            answers: VERDICTS.into(),
        },
        Role::ResponseHook => Texts {
            title: "Response hook",
            about: "A response hook looks at the model's final answer before the person gets it. It may annotate it, put another one in \
                    its place, or drop it. While one may still change or take the answer, its text is held back, unless the entry says \
                    `stream: through`. A JSON Schema that the person asked for is checked again after the last hook.",
            example: "extensions:\n  response_hooks:\n    - { action: words.polish, may: [replace], on_failure: open }\n",
            answers: VERDICTS.into(),
        },
        Role::NotificationSink => Texts {
            title: "Notification sink",
            about: "A notification sink brings an event to people: a mail, a line in a chat, a request to another system. An entry says \
                    which events it takes.",
            example: "extensions:\n  notifications:\n    - on: [plugin.*, approval.waiting]\n      action: webhook.send\n      \
                      quiet: { from: \"22:00\", to: \"07:00\", timezone: Europe/Berlin, except: [plugin.failed] }\n    \
                      - on: [schedule.failed]\n      where: { job: [nightly] }\n      action: slack.post_message\n      \
                      args: { channel: \"#ops\", text: \"{{ event.summary }} ({{ event.fields.reason }})\" }\n",
            answers: kinds().into(),
        },
        Role::ScheduledTask => Texts {
            title: "Scheduled task",
            about: "A scheduled task does what a job of the [schedule](../schedule.md) is for, at each planned time. Any action can be \
                    the target of a job; one that declares the role also learns which run it is.",
            example: "extensions:\n  schedule:\n    - { id: nightly, cron: \"0 3 * * *\", action: files.tidy, args: { older_than_days: 30 } }\n",
            answers: TASK.into(),
        },
        Role::AuthProvider => Texts {
            title: "Auth provider",
            about: "An auth provider says whose a credential is that a request to the gateway brings: a token of an OpenID Connect \
                    provider, a password of a directory. It grants nothing: what its scopes are worth is the entry's decision.",
            example: "extensions:\n  auth:\n    - { action: oidc.authenticate, scopes: { \"talon:chat\": [chat], \"talon:staff\": [chat, approve] } }\n",
            answers: AUTH.into(),
        },
        Role::ApiRoute => Texts {
            title: "API route",
            about: "The action of an API route answers HTTP requests to a path of the gateway below `/x/`: what another system calls, or \
                    a page of your own reads.",
            example: "extensions:\n  routes:\n    - { path: /x/tickets, method: POST, action: jira.create, scope: chat, headers: [content-type] }\n",
            answers: ROUTE.into(),
        },
        Role::StorageBackend => Texts {
            title: "Storage backend",
            about: "A storage backend keeps the plugins' key-values in place of SQLite or PostgreSQL: in Valkey, in an object store, in \
                    a database of your own. The agent's sessions stay in `state.engine`.",
            example: "state:\n  plugins: { engine: plugin, action: valkey.store }\n",
            answers: STORAGE.into(),
        },
        Role::Channel => Texts {
            title: "Channel",
            about: "A channel is a place where people talk to the agent: a chat service, a web hook of another program. A plugin tells \
                    what they write, and its action brings the answers. [Telegram](channels.md#telegram), [Slack](channels.md#slack) and a \
                    [web hook](channels.md#a-web-hook) come with Talon.",
            example: "extensions:\n  channels:\n    - { action: telegram.channel, name: telegram, senders: [\"123456789\"], approve: [\"123456789\"] }\n",
            answers: CHANNEL.into(),
        },
    }
}
