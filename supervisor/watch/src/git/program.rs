//! Asks the `git` program, bounded in time and output, and without anything in a repository's configuration
//! that runs other programs.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::event::Added;
use crate::limits::{COMMAND_OUTPUT_BYTES, GIT_TIMEOUT};

use super::head_log::NewCommit;
use super::patch;

/// git could not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    #[error("there is no program git: commits, conflicts and staged files are not looked into; install git")]
    Missing,
    #[error("git cannot be run: {0}")]
    Start(io::Error),
    #[error("git took longer than {} s", GIT_TIMEOUT.as_secs())]
    Slow,
    #[error("git says: {0}")]
    Refused(String),
}

/// The `git` program for one work tree.
pub(super) struct Git<'w>(pub(super) &'w Path);

impl Git<'_> {
    /// The lines that a commit added, against its first parent.
    pub(super) fn added_by(&self, commit: &str) -> Result<Vec<Added>, GitError> {
        let output = self.run(
            &["diff-tree", "-p", "--root", "--no-commit-id", "-m", "--first-parent", "-r", commit],
            PATCH_OPTIONS,
            None,
        )?;
        Ok(patch::added(&output))
    }

    /// The first line of a commit's message, from the commit as it is stored: `git show` would have a signature
    /// checked by the program that the repository names.
    pub(super) fn summary(&self, commit: &str) -> Result<String, GitError> {
        let output = self.run(&["cat-file", "commit", commit], &[], None)?;
        Ok(subject(&output).to_owned())
    }

    /// The commits that lead from one to another, the oldest first; of more than `most` the latest. Empty if none do.
    pub(super) fn commits_between(&self, from: &str, to: &str, most: usize) -> Result<Vec<String>, GitError> {
        let (range, most) = (format!("{from}..{to}"), format!("--max-count={most}"));
        let output =
            self.run(&["rev-list", "--ancestry-path", "--reverse", &most, &range, "--"], &[], None)?;
        Ok(output.lines().map(str::to_owned).collect())
    }

    /// Which of these commits are there: of those that were amended away, git removes the objects after some weeks.
    pub(super) fn existing_commits(&self, commits: &[NewCommit]) -> Result<Vec<NewCommit>, GitError> {
        let question: String = commits.iter().map(|commit| format!("{}\n", commit.id)).collect();
        let answer = self.run(&["cat-file", "--batch-check=%(objecttype)"], &[], Some(question))?;
        let is_commit = answer.lines().map(|line| line == "commit");
        let existing = commits.iter().zip(is_commit).filter(|(_, is_commit)| *is_commit);
        Ok(existing.map(|(commit, _)| commit.clone()).collect())
    }

    /// The lines that a commit of the index would add to `head`.
    pub(super) fn added_by_index(&self, head: Option<&str>) -> Result<Vec<Added>, GitError> {
        let tree = self.tree_of(head)?;
        let output = self.run(&["diff-index", "--cached", "-p", &tree], PATCH_OPTIONS, None)?;
        Ok(patch::added(&output))
    }

    /// The files in the index that differ from `head`, with their sizes.
    pub(super) fn staged_sizes(&self, head: Option<&str>) -> Result<Vec<(String, u64)>, GitError> {
        let tree = self.tree_of(head)?;
        let question = ["diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--diff-filter=AM", &tree];
        let raw = self.run(&question, PLAIN_OPTIONS, None)?;
        // `:OLDMODE NEWMODE OLDHASH NEWHASH STATUS`, then the name, each with a zero byte behind it.
        let mut fields = raw.split('\0');
        let mut files = Vec::new();
        while let (Some(entry), Some(name)) = (fields.next(), fields.next()) {
            let mut parts = entry.split(' ');
            let (mode, hash) = (parts.nth(1), parts.nth(1));
            // A submodule's entry is a commit, which is not in this repository.
            if let Some(hash) = hash.filter(|_| mode != Some("160000")) {
                files.push((name.to_owned(), hash.to_owned()));
            }
        }
        let question: String = files.iter().map(|(_, hash)| format!("{hash}\n")).collect();
        let answer = self.run(&["cat-file", "--batch-check=%(objectsize)"], &[], Some(question))?;
        let sizes = answer.lines().map(|line| line.parse().unwrap_or(0));
        Ok(files.into_iter().map(|(name, _)| name).zip(sizes).collect())
    }

    /// The paths in conflict, by the index alone: comparing files with it would run the filters of a repository.
    pub(super) fn conflicts(&self) -> Result<Vec<String>, GitError> {
        let output = self.run(&["ls-files", "-u", "-z"], &[], None)?;
        // `MODE HASH STAGE`, a tab and the path, up to three times for each path.
        let paths = output.split('\0').filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned()));
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// What the index is compared with: before the first commit, the empty tree in this repository's kind of hash.
    fn tree_of(&self, head: Option<&str>) -> Result<String, GitError> {
        match head {
            Some(head) => Ok(head.to_owned()),
            None => {
                let hash = self.run(&["hash-object", "-t", "tree", "--stdin"], &[], Some(String::new()))?;
                Ok(hash.trim().to_owned())
            }
        }
    }

    fn run(&self, arguments: &[&str], options: &[&str], input: Option<String>) -> Result<String, GitError> {
        let mut command = Command::new("git");
        command.current_dir(self.0);
        // Configuration that runs programs, or waits for somebody, is switched off: a watched repository may be
        // hostile, and nobody asked for this command.
        command.args(["--no-optional-locks", "--no-pager", "--literal-pathspecs"]);
        for &setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(&arguments[..1]).args(options).args(&arguments[1..]);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_TRACE"] {
            command.env_remove(variable);
        }
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("LC_ALL", "C");
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError::Missing,
            _ => GitError::Start(error),
        })?;
        let answer = communicate(&mut child, input);
        if answer.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(GitError::Start)?;
        let (output, errors) = answer?;
        // One that was cut got SIGPIPE, and said what was asked.
        if status.success() || output.len() >= COMMAND_OUTPUT_BYTES {
            return Ok(String::from_utf8_lossy(&output).into_owned());
        }
        let said = String::from_utf8_lossy(&errors);
        Err(GitError::Refused(said.lines().next().unwrap_or("nothing").to_owned()))
    }
}

/// What is set whatever a repository's configuration says: it names no program and no place to fetch from.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=true",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
];

/// The first line of the message of a stored commit. Headers end at the first empty line: within one, such as a
/// signature, every further line begins with a space.
fn subject(commit: &str) -> &str {
    let message = commit.split_once("\n\n").map_or("", |(_, message)| message);
    message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Options of commands that print patches: no program of the repository's configuration, no context.
const PATCH_OPTIONS: &[&str] = &[
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--no-prefix",
    "--unified=0",
    "--ignore-submodules=all",
];

/// The same for those that print names.
const PLAIN_OPTIONS: &[&str] = &["--no-ext-diff", "--no-renames", "--ignore-submodules=all"];

/// Writes the input, and reads both outputs to their end, each at most [`COMMAND_OUTPUT_BYTES`].
fn communicate(child: &mut Child, input: Option<String>) -> Result<(Vec<u8>, Vec<u8>), GitError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    let read = |name: &'static str, pipe: Option<Box<dyn io::Read + Send>>| {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                // What cannot be read any more is the end.
                let _ = pipe.take(COMMAND_OUTPUT_BYTES as u64).read_to_end(&mut bytes);
            }
            // Nobody waits any more after the timeout.
            let _ = sender.send((name, bytes));
        });
    };
    read("stdout", stdout.map(|pipe| Box::new(pipe) as Box<dyn io::Read + Send>));
    read("stderr", stderr.map(|pipe| Box::new(pipe) as Box<dyn io::Read + Send>));
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        std::thread::spawn(move || {
            // git may end before it has read everything.
            let _ = stdin.write_all(input.as_bytes());
        });
    }
    let until = std::time::Instant::now() + GIT_TIMEOUT;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let left = until.saturating_duration_since(std::time::Instant::now());
        match receiver.recv_timeout(left) {
            Ok(("stdout", bytes)) => output = bytes,
            Ok((_, bytes)) => errors = bytes,
            Err(_) => return Err(GitError::Slow),
        }
    }
    Ok((output, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_first_line_behind_all_headers() {
        let signed =
            "tree 1\nauthor A <a> 1 +0000\ngpgsig -----BEGIN-----\n \n abc\n -----END-----\n\ntwo\n\nbody\n";
        assert_eq!(subject(signed), "two");
        assert_eq!(subject("tree 1\n\n\n  \nlate"), "late");
        assert_eq!((subject("tree 1\n\n"), subject("tree 1"), subject("")), ("", "", ""));
    }
}
