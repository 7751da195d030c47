//! Mutual TLS for hub, agents and tools: TLS 1.3, HTTP/2, client certificates required, identities in URI names.
//!
//! * [`Credentials`]: certificate, key and trust roots, checked together; [`LiveCredentials`]: the current ones.
//! * [`accept`]: a hub's incoming connections, each with the [`PeerIdentity`] its certificate states, within
//!   [`DoorBounds`].
//! * [`HubConnector`]: an agent's or a tool's way to a hub, for tonic.
//! * [`Reloader`]: takes new files while connections stay up; those that the new files refuse end, and why says their
//!   [`Lifetime`].
//!
//! * [`accept_strangers`], [`JoinConnector`]: the port at which clusters join that have no certificate yet, and the way to it.
//! * [`ServedCertificate`]: what is shown to API servers that ask a webhook: HTTP/1.1, and no certificate asked for.
//!
//! There is no plaintext mode and no way to skip a check. Other modules decide what an identity may do.

mod accept;
mod address;
mod bounds;
mod calls;
mod clients;
mod clock;
mod connection;
mod connector;
mod control_frames;
mod credentials;
mod dial;
mod files;
mod goodbye;
mod heard;
mod join_connector;
mod lifetime;
mod live;
mod look;
mod metrics;
mod pem;
mod pinned;
mod places;
mod provider;
mod proxy;
mod race;
mod reload;
mod roots;
mod served;
mod signing_request;
mod stranger;
mod unfinished;
mod verify;
mod vouch;

#[cfg(test)]
pub(crate) mod tests;

pub use accept::{Incoming, accept, accept_within, listen, tcp_connections};
pub use address::{HubAddress, InvalidAddress};
pub use bounds::{
    CONNECTIONS_MAX, DoorBounds, HANDSHAKE_SILENCE_MAX, HANDSHAKES_MAX, MEMBER_CONNECTIONS_MAX,
    OPERATOR_CONNECTIONS_MAX, OPERATORS_RESERVE, READER_CONNECTIONS_MAX,
};
pub use calls::{Call, Calls, LargeIntroduction};
pub use clients::{ClientFiles, ClientPem, DENIED_KEYS_MAX, MemberKeys};
pub use connection::{PeerIdentity, TlsConnection, peer};
pub use connector::{
    HTTP2_KEEPALIVE_INTERVAL, HTTP2_KEEPALIVE_TIMEOUT, HubConnector, HubStream, HubUnreachable, explain,
};
#[cfg(feature = "testing")]
pub use control_frames::frames_are_read_however_they_are_cut;
pub use credentials::Credentials;
pub use dial::{BoxedIo, Dial, Io, TcpDial};
pub use files::TlsFiles;
pub use join_connector::JoinConnector;
pub use lifetime::{CONNECTION_AGE_MAX, ConnectionEnd, Lifetime};
pub use live::LiveCredentials;
pub use look::HandshakeSeen;
pub use metrics::{Handshake, TlsMetrics};
pub use pem::{CredentialsError, Pem, certificates as certificates_in};
pub use pinned::NotPinned;
pub use provider::{ProviderError, install_crypto_provider};
pub use proxy::HubDial;
pub use reload::{RELOAD_CHECK_INTERVAL, Reload, Reloader};
pub use served::{ServedCertificate, ServedFiles};
pub use signing_request::{UnusableKey, fingerprint_of, keys_in, new_key, pem_of, signing_request};
pub use stranger::{
    JOIN_CONNECTION_AGE_MAX, JOIN_CONNECTIONS_MAX, JOIN_HANDSHAKES_MAX, StrangerConnection, Strangers,
    accept_strangers,
};
pub use verify::NotTheHub;
pub use vouch::{AUTHORITIES_MAX, NotVouched, Vouched, vouched};
