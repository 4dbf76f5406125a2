//! Sends notifications by e-mail.

mod account;
mod message;
mod outcome;
mod send;
mod sent_before;
mod settings;
mod smtp;
mod stream;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::send::Mailer;

fn main() -> ExitCode {
    Plugin::new("mail")
        .description("Sends notifications by e-mail.")
        .tool(send::send())
        .init(|settings| async move { Mailer::new(&settings) })
        .serve()
}
