//! `tributary doctor`: looks at the certificate and at each address of the hub, and says what to do. It changes nothing.

use std::process::ExitCode;

use clap::Args;
use client::Access;
use shared::{
    doctor::{Check, Output, Report, hub::hub, look, report::EXIT_UNSEEN},
    model::advice,
};

use crate::operate::HubArgs;

/// The way to the hub.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    hub: HubArgs,
}

/// Prints what was found; returns 0 if nothing is wrong, 1 if something is, 2 if something could not be looked at.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    ended(client::run(async {
        let report = examine(args).await;
        Ok((report.exit_code(), form(args).print(&report)))
    }))
}

/// Prints the text of a command that looks for faults, and returns its exit code; an error counts as not looked at.
pub(crate) fn ended(looked: anyhow::Result<(u8, String)>) -> ExitCode {
    match looked {
        Ok((code, text)) => {
            print!("{text}");
            ExitCode::from(code)
        }
        Err(error) => {
            let _ = shared::process::exit_code(Err(error));
            ExitCode::from(EXIT_UNSEEN)
        }
    }
}

/// Returns what was found, as it is printed.
pub(crate) async fn report(args: &DoctorArgs) -> anyhow::Result<String> {
    Ok(form(args).print(&examine(args).await))
}

fn form(args: &DoctorArgs) -> Output {
    if args.hub.output.is_document() {
        Output::Json
    } else {
        Output::Text
    }
}

async fn examine(args: &DoctorArgs) -> Report {
    let mut report = Report::default();
    match args.hub.access() {
        Ok(access) => looked_at(&access, &mut report).await,
        Err(error) => report.extend([Check::fault(
            "access",
            format!("{error:#}"),
            format!(
                "correct the flags, or the context with `{}`",
                advice::context_set("NAME")
            ),
        )]),
    }
    report
}

async fn looked_at(access: &Access, report: &mut Report) {
    let identity = &access.credentials.facts().identity;
    let found = format!(
        "{identity} (role {}) is within its validity",
        identity.role.word()
    );
    report.extend([Check::fine("access", found)]);
    for address in access.hubs.iter().take(look::HUBS_MAX) {
        report.extend(hub(&look::hub(address, Some(&access.credentials)).await));
    }
}
