//! The command `adopt`: shows what a restored backup left without an owner, and takes it over when told to. `apply`
//! decides what is taken over; here is the text for people.

use std::fmt::Write;

use anyhow::Context;
use shared::{
    api_client::{ApiMetrics, ServedVersions, api_client, api_server, in_served_version},
    model::advice,
    process::{LogArgs, Threads, block_on},
    tls::install_crypto_provider,
};

use crate::{
    apply::{Orphan, adopt},
    args::AdoptArgs,
    run,
};

/// Runs the command.
pub fn run(log: &LogArgs, args: &AdoptArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    block_on(Threads::One, async {
        let config = run::kubernetes(args.kubeconfig.as_deref()).await?;
        let client = api_client(config, ApiMetrics::default())?;
        let client = in_served_version(client, ServedVersions::default());
        let orphans = adopt(&api_server(client), args.confirm).await.context(
            "not everything was looked at; run the command again, what was taken stays taken. It needs the rights of \
             the agent",
        )?;
        print!("{}", report(&orphans, args));
        Ok(())
    })
}

fn report(orphans: &[Orphan], args: &AdoptArgs) -> String {
    if orphans.is_empty() {
        return "Nothing to adopt: no object that an agent made is without its owner.\n".to_owned();
    }
    let first = if args.confirm {
        "Adopted; the agent of this cluster keeps these objects from now on:\n"
    } else {
        "Nothing has changed yet. With --confirm these objects become the agent's again:\n"
    };
    let mut text = first.to_owned();
    for orphan in orphans {
        let managers = if orphan.managers.is_empty() {
            "nobody".to_owned()
        } else {
            orphan.managers.join(", ")
        };
        let Orphan {
            kind,
            namespace,
            name,
            ..
        } = orphan;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {kind} {namespace}/{name} (its fields are owned by {managers})"
        );
    }
    if !args.confirm {
        let kubeconfig = args.kubeconfig.as_ref().map(|path| path.to_string_lossy());
        let _ = writeln!(
            text,
            "To do it:\n  {}",
            advice::agent_adopt(kubeconfig.as_deref())
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_says_what_and_how() {
        let orphan = Orphan {
            kind: "Service".into(),
            namespace: "shop".into(),
            name: "derived-x".into(),
            managers: vec!["velero".into()],
        };
        let mut args = AdoptArgs {
            kubeconfig: Some("east.yaml".into()),
            dry_run: false,
            confirm: false,
        };
        let text = report(std::slice::from_ref(&orphan), &args);
        assert!(
            text.contains("Service shop/derived-x (its fields are owned by velero)"),
            "{text}"
        );
        assert!(
            text.contains("tributary-agent adopt --kubeconfig east.yaml --confirm"),
            "{text}"
        );
        args.confirm = true;
        assert!(report(&[orphan], &args).starts_with("Adopted"));
        assert!(report(&[], &args).starts_with("Nothing to adopt"));
    }
}
