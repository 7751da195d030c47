//! The forms of names, labels and addresses, and what the API server says of a text that has another form.
//! Pure functions from texts to complaints; never knows a field.

use std::net::IpAddr;

/// The longest DNS label, label value and name of a label key.
const LABEL_LENGTH_MAX: usize = 63;
/// The longest DNS subdomain.
const SUBDOMAIN_LENGTH_MAX: usize = 253;
/// The longest name of a port of a container.
const PORT_NAME_LENGTH_MAX: usize = 15;

/// Faults of a text; empty without any.
pub(crate) type Faults = Vec<String>;

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} characters"))
}

/// A lowercase DNS label.
pub(crate) fn label(text: &str) -> Faults {
    let shape = if is_label(text) {
        None
    } else if text.split('.').all(is_label) {
        Some("must not contain dots".to_owned())
    } else {
        Some(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
             and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        )
    };
    too_long(text, LABEL_LENGTH_MAX)
        .into_iter()
        .chain(shape)
        .collect()
}

/// A lowercase DNS subdomain. Its parts have no length of their own in Kubernetes; the whole has.
pub(crate) fn subdomain(text: &str) -> Faults {
    let shape = (!text.split('.').all(is_label)).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned()
    });
    too_long(text, SUBDOMAIN_LENGTH_MAX)
        .into_iter()
        .chain(shape)
        .collect()
}

fn is_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Faults {
    let long =
        (text.len() > LABEL_LENGTH_MAX).then(|| format!("must be no more than {LABEL_LENGTH_MAX} bytes"));
    let shape = (!text.is_empty() && !is_value(text)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
         start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    });
    long.into_iter().chain(shape).collect()
}

/// A name with an optional domain before it: the key of a label or annotation.
pub(crate) fn qualified(key: &str) -> Faults {
    const SHAPE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let (prefix, name) = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            let domain = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {SHAPE} {domain}")];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut faults: Faults = match prefix {
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => subdomain(prefix)
            .iter()
            .map(|fault| format!("prefix part {fault}"))
            .collect(),
        None => Vec::new(),
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH_MAX {
        faults.push(format!("name part must be no more than {LABEL_LENGTH_MAX} bytes"));
    }
    if !is_value(name) {
        faults.push(format!("name part {SHAPE}"));
    }
    faults
}

/// The name of a port of a container, which a targetPort may be.
pub(crate) fn port_name(text: &str) -> Faults {
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let rules = [
        (
            text.len() > PORT_NAME_LENGTH_MAX,
            "must be no more than 15 characters",
        ),
        (
            text.is_empty() || !text.as_bytes().iter().all(letter),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !text.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (
            text.starts_with('-') || text.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    rules
        .iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, why)| (*why).to_owned())
        .collect()
}

/// A domain of two labels or more, with or without the dot at its end.
pub(crate) fn domain(text: &str) -> Faults {
    let text = text.strip_suffix('.').unwrap_or(text);
    let faults = subdomain(text);
    if !faults.is_empty() {
        return vec![faults.join(",")];
    }
    let short = !text.contains('.');
    let few = short.then(|| "should be a domain with at least two segments separated by dots".to_owned());
    few.into_iter().chain(text.split('.').flat_map(label)).collect()
}

/// An address, and what is wrong with the text: `canonical` refuses other ways to write an IPv6 address.
pub(crate) fn address(text: &str, canonical: bool) -> Result<IpAddr, String> {
    // The standard parser refuses leading zeros, as the API server does.
    let Ok(ip) = text.parse::<IpAddr>() else {
        let sloppy = text.split('.').count() == 4 && text.split('.').all(|part| part.parse::<u8>().is_ok());
        return Err(if sloppy {
            "must not have leading 0s".to_owned()
        } else {
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()
        });
    };
    match ip {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => {
            Err("must not be an IPv4-mapped IPv6 address".to_owned())
        }
        ip if canonical && ip.to_string() != text => {
            Err(format!("must be in canonical form ({:?})", ip.to_string()))
        }
        ip => Ok(ip),
    }
}

/// Why an address cannot be an endpoint.
pub(crate) fn endpoint(ip: IpAddr) -> Option<String> {
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        Some(format!("may not be unspecified ({ip})"))
    } else if ip.is_loopback() {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned())
    } else if link_local {
        Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned())
    } else {
        multicast.then(|| "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned())
    }
}
