//! `tributary context`: shows and changes the file that remembers hubs and certificates.

pub mod command;

pub(crate) use client::context::{Context, Pem, Store, lock};
