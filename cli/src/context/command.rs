//! `tributary context`: shows and changes the file of the contexts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use client::context::{Context, Pem, Store, bytes, unknown, valid_name};
use shared::{
    identity::Role,
    model::advice,
    tls::{Credentials, HubAddress, Pem as PemBytes},
};

/// All commands about contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// List the contexts; a star marks the current one
    List,
    /// Make a context the current one
    Use(NameArgs),
    /// Show a context, without its key
    Show(ShowArgs),
    /// Add a context, or change one
    #[command(
        long_about = "Add a context, or change one: settings that are not given stay.\n\n\
        The files are read and checked before anything is written. The context keeps their paths; with --embed it keeps \
        their content, so that the files are not needed afterwards. The first context becomes the current one.\n\n\
        Example:\n  tributary context set prod --hub https://HUB:8443 --tls-ca ca.crt --tls-cert alice.crt --tls-key alice.key"
    )]
    Set(SetArgs),
    /// Remove a context
    Remove(NameArgs),
}

/// A context by its name.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Name of the context
    #[arg(value_name = "NAME")]
    name: String,
}

/// A context, or the current one.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the context; the current one unless given
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// A context and what it remembers.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Name of the context
    #[arg(value_name = "NAME", value_parser = valid_name)]
    name: String,
    /// Address of the hub; several are tried in turn
    #[arg(
        long,
        env = "TRIBUTARY_HUB",
        value_name = "https://HOST:PORT",
        value_delimiter = ','
    )]
    hub: Vec<HubAddress>,
    /// Certificates of the trusted authorities (PEM)
    #[arg(long = "tls-ca", env = "TRIBUTARY_TLS_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate of an operator or a reader (PEM)
    #[arg(long = "tls-cert", env = "TRIBUTARY_TLS_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of that certificate (PEM, PKCS#8)
    #[arg(long = "tls-key", env = "TRIBUTARY_TLS_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Keep the content of the files, not their paths
    #[arg(long, env = "TRIBUTARY_EMBED")]
    embed: bool,
    /// Make the context the current one
    #[arg(long = "use", env = "TRIBUTARY_USE")]
    make_current: bool,
}

/// Runs a command over the user's file and returns what to print.
pub(crate) fn run(command: ContextCommand) -> anyhow::Result<String> {
    let store = Store::of_user()?;
    match command {
        ContextCommand::List => list(&store),
        ContextCommand::Use(NameArgs { name }) => make_current(&store, &name),
        ContextCommand::Show(ShowArgs { name }) => show(&store, name.as_deref()),
        ContextCommand::Set(args) => set(&store, args),
        ContextCommand::Remove(NameArgs { name }) => remove(&store, &name),
    }
}

fn list(store: &Store) -> anyhow::Result<String> {
    let contexts = store.read()?;
    if contexts.contexts.is_empty() {
        return Ok(format!(
            "No contexts in {}. One is added with:\n  {}\n",
            store.path().display(),
            advice::context_set("NAME")
        ));
    }
    let mut rows = vec![
        ["CURRENT", "NAME", "CLUSTERSET", "HUB"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(contexts.contexts.iter().map(|context| {
        let current = contexts.current.as_deref() == Some(&context.name);
        vec![
            if current { "*" } else { "" }.to_owned(),
            context.name.clone(),
            context.clusterset.clone().unwrap_or_else(|| "-".to_owned()),
            addresses(&context.hub),
        ]
    }));
    let lines = shared::columns::columns(&rows).into_iter();
    Ok(lines.map(|line| line + "\n").collect())
}

fn addresses(hubs: &[HubAddress]) -> String {
    let hubs: Vec<String> = hubs.iter().map(ToString::to_string).collect();
    hubs.join(",")
}

fn make_current(store: &Store, name: &str) -> anyhow::Result<String> {
    store.change(|contexts| {
        if contexts.get(name).is_none() {
            return Err(unknown(name, contexts));
        }
        contexts.current = Some(name.to_owned());
        Ok(format!("{name} is the current context.\n"))
    })
}

fn show(store: &Store, name: Option<&str>) -> anyhow::Result<String> {
    let context = store.context(name)?;
    let context = context.with_context(|| {
        format!(
            "no context is current: `{}` chooses one",
            advice::context_use("NAME")
        )
    })?;
    Ok(format!(
        "name: {}\nclusterset: {}\nhub: {}\nca: {}\ncertificate: {}\nkey: {}\nfile: {}\n",
        context.name,
        context.clusterset.as_deref().unwrap_or("-"),
        addresses(&context.hub),
        context.ca,
        context.certificate,
        context.key,
        store.path().display(),
    ))
}

fn remove(store: &Store, name: &str) -> anyhow::Result<String> {
    store.change(|contexts| {
        if !contexts.remove(name) {
            return Err(unknown(name, contexts));
        }
        Ok(match contexts.current {
            Some(_) => format!("{name} is removed.\n"),
            None => format!("{name} is removed, and no context is current.\n"),
        })
    })
}

fn set(store: &Store, args: SetArgs) -> anyhow::Result<String> {
    let before = store.read()?.get(&args.name).cloned();
    let missing = |flag: &str| {
        format!("a new context needs --hub, --tls-ca, --tls-cert and --tls-key: {flag} is missing")
    };
    let pem = |given: Option<PathBuf>, kept: Option<Pem>, flag: &'static str| match given {
        Some(path) => absolute(path),
        None => kept.with_context(|| missing(flag)),
    };
    let mut context = Context {
        name: args.name.clone(),
        clusterset: None,
        hub: match &before {
            Some(before) if args.hub.is_empty() => before.hub.clone(),
            _ => args.hub,
        },
        ca: pem(
            args.ca,
            before.as_ref().map(|before| before.ca.clone()),
            "--tls-ca",
        )?,
        certificate: pem(
            args.cert,
            before.as_ref().map(|before| before.certificate.clone()),
            "--tls-cert",
        )?,
        key: pem(args.key, before.map(|before| before.key), "--tls-key")?,
    };
    ensure!(!context.hub.is_empty(), missing("--hub"));
    let directory = store.path().parent().unwrap_or(Path::new("."));
    let read = |pem: &Pem, flag: &str| bytes(&pem.clone().below(directory), flag);
    let bytes = PemBytes {
        cert: read(&context.certificate, "--tls-cert")?,
        key: read(&context.key, "--tls-key")?,
        ca: read(&context.ca, "--tls-ca")?,
    };
    let credentials = Credentials::from_pem(&bytes)?;
    let identity = &credentials.facts().identity;
    ensure!(
        matches!(identity.role, Role::Operator(_) | Role::Reader(_)),
        "--tls-cert is {identity}, a {}'s certificate: a context needs an operator's or a reader's",
        identity.role.word()
    );
    context.clusterset = Some(identity.clusterset.to_string());
    if args.embed {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map(Pem::Inline);
        context.ca = text(bytes.ca)?;
        context.certificate = text(bytes.cert)?;
        context.key = text(bytes.key)?;
    }
    let name = args.name;
    store.change(|contexts| {
        contexts.put(context);
        if args.make_current {
            contexts.current = Some(name.clone());
        }
        let current = match contexts.current.as_deref() {
            Some(current) if current == name => "It is the current context.".to_owned(),
            _ => format!("`{}` makes it the current one.", advice::context_use(&name)),
        };
        Ok(format!(
            "{name}: {identity} at {}. {current}\n",
            store.path().display()
        ))
    })
}

/// A path that does not depend on the working directory.
fn absolute(path: PathBuf) -> anyhow::Result<Pem> {
    let absolute = std::path::absolute(&path);
    let absolute = absolute.with_context(|| format!("cannot use {}", path.display()))?;
    Ok(Pem::File(absolute))
}
