//! Both ends of TLS against each other: what connects, what is refused and with which words, what a reload changes.

mod clients;
mod doors;
mod ends;
mod handshake;
mod lifetime;
mod members_only;
mod own_issuer;
pub(crate) mod pki;
mod reload;
mod roots;
mod served;
mod strangers;
