//! A hub's address: `https://HOST:PORT`. It checks the form; it never resolves a name.

use std::{fmt, str::FromStr};

/// Host and port of a hub. The name is resolved anew at every dial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HubAddress {
    /// A DNS name, or an IP address without brackets.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
}

/// The text is not a hub's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a hub address: write https://HOST:PORT, for example https://hub.example.org:8443")]
pub struct InvalidAddress(String);

impl FromStr for HubAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.chars().take(200).collect());
        let uri: http::Uri = text.parse().map_err(|_| invalid())?;
        let host = uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let names_a_hub = uri.scheme_str() == Some("https")
            && !host.is_empty()
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none()
            && !uri
                .authority()
                .is_some_and(|authority| authority.as_str().contains('@'))
            && rustls_pki_types::ServerName::try_from(host).is_ok();
        match uri.port_u16() {
            Some(port) if names_a_hub && port != 0 => Ok(Self {
                host: host.into(),
                port,
            }),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "https://[{}]:{}", self.host, self.port);
        }
        write!(f, "https://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        for good in ["https://hub:7443", "https://10.0.0.1:1", "https://[fd00::1]:7443"] {
            assert_eq!(good.parse::<HubAddress>().expect(good).to_string(), good);
        }
        assert!("https://hub:7443/".parse::<HubAddress>().is_ok());
        for bad in [
            "hub:7443",
            "http://hub:7443",
            "https://hub",
            "https://hub:0",
            "https://:7443",
            "https://hub:7443/path",
            "https://hub:7443?x",
            "https://user@hub:7443",
            "https://hub:99999",
            "",
        ] {
            assert!(bad.parse::<HubAddress>().is_err(), "{bad}");
        }
    }
}
