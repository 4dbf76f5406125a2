//! Runs other programs with limits on time and output.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// How long another program may take to answer, so that `talon doctor` never hangs.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes to read of a program's output.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Why another program gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    /// It cannot be started, or its output cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It took too long, and was killed.
    #[error("no answer within {} seconds", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
}

/// A program's standard output, whatever its exit status; or why there is none. Kills the program if it takes
/// too long.
pub(super) async fn output_of(command: &mut Command) -> Result<String, OutputError> {
    let spawned =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn();
    let mut child = spawned?;
    let reading = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).await?;
        }
        Ok::<_, OutputError>(String::from_utf8_lossy(&bytes).into_owned())
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, reading).await {
        Ok(read) => read,
        Err(_) => Err(OutputError::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-28
    #[tokio::test]
    async fn what_hangs_or_never_ends_is_cut_off() {
        let yes = output_of(&mut Command::new("yes")).await.unwrap();
        assert_eq!(yes.len() as u64, MAX_OUTPUT_BYTES);
        tokio::time::pause();
        let hangs = output_of(Command::new("sleep").arg("1000")).await;
        assert!(hangs.unwrap_err().to_string().contains("within"));
        assert!(output_of(&mut Command::new("/nonexistent")).await.is_err());
    }
}
