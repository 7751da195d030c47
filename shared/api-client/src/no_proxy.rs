//! Owns: which hosts NO_PROXY leaves out of what a proxy in the environment is for, by the rules of Go's programs:
//! kubectl and the agent agree about one environment.
//! Never: connects.

use std::net::IpAddr;

/// The value of the first of these variables that has one.
pub fn from_environment(names: [&str; 2], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    names
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty())
}

/// Returns true if `host` is reached without the proxy that the environment names.
pub fn is_direct(host: &str, port: Option<u16>, no_proxy: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy
        .split(',')
        .map(|entry| entry.trim().to_ascii_lowercase())
        .any(|entry| leaves_out(&entry, &host, address, port))
}

/// Returns true if one entry of NO_PROXY names this host: `*`, an address, a range, a domain with or without a port.
fn leaves_out(entry: &str, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let network: Option<IpAddr> = network.parse().ok();
        let bits: Option<u32> = bits.parse().ok();
        return matches!((address, network, bits), (Some(one), Some(range), Some(bits)) if within(one, range, bits));
    }
    if let Ok(named) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(named);
    }
    let (name, wanted) = match entry.rsplit_once(':') {
        Some((name, wanted)) => (name, wanted.parse().ok()),
        None => (entry, None),
    };
    if wanted.is_some() && wanted != port {
        return false;
    }
    if let Ok(named) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(named);
    }
    let domain = name.strip_prefix('*').unwrap_or(name);
    match domain.strip_prefix('.') {
        Some("") | None if domain.trim_start_matches('.').is_empty() => false,
        // A leading dot asks for names below the domain.
        Some(_) => host.ends_with(domain),
        None => host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
    }
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (one, range, width) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(range)) => (u128::from(one.to_bits()), u128::from(range.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(range)) => (one.to_bits(), range.to_bits(), 128),
        _ => return false,
    };
    let Some(free) = u32::checked_sub(width, bits) else {
        return false;
    };
    one.checked_shr(free).unwrap_or(0) == range.checked_shr(free).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        for (host, port, no_proxy, direct) in [
            ("api.example.org", 6443, "", false),
            ("api.example.org", 6443, "*", true),
            ("api.example.org", 6443, "example.org", true),
            ("api.example.org", 6443, "other.org, example.org", true),
            ("api.example.org", 6443, ".example.org", true),
            ("api.example.org", 6443, "*.example.org", true),
            ("example.org", 6443, ".example.org", false),
            ("badexample.org", 6443, "example.org", false),
            ("API.example.ORG", 6443, "api.EXAMPLE.org", true),
            ("api.example.org", 6443, "api.example.org:6443", true),
            ("api.example.org", 6443, "api.example.org:443", false),
            ("10.96.0.1", 443, "10.0.0.0/8", true),
            ("11.96.0.1", 443, "10.0.0.0/8", false),
            ("10.96.0.1", 443, "0.0.0.0/0", true),
            ("10.96.0.1", 443, "10.96.0.1", true),
            ("10.96.0.1", 443, "10.96.0.1:443", true),
            ("10.96.0.1", 443, "10.0.0.0/64", false),
            ("[fd00::1]", 443, "fd00::/8", true),
            ("[fd00::1]", 443, "10.0.0.0/8", false),
            ("[fd00::1]", 443, "[fd00::1]:443", true),
            ("127.0.0.1", 6443, "", true),
            ("[::1]", 6443, "", true),
            ("localhost", 6443, "", true),
            ("api.example.org", 6443, ",. ,", false),
        ] {
            assert_eq!(
                is_direct(host, Some(port), no_proxy),
                direct,
                "{host}:{port} with {no_proxy:?}"
            );
        }
    }
}
