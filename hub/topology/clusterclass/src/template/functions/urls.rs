//! Owns: `urlParse` and `urlJoin`, as Go's `net/url` reads and writes URLs.

use std::{collections::BTreeMap, net::Ipv6Addr};

use super::{
    super::{
        limits::Failure,
        meter::Meter,
        runes,
        signature::{
            Signature,
            Type::{Dict, Text},
            dict, exactly, said, text,
        },
        value::{self, Value},
    },
    bytes,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "urlParse" => exactly(&[Text], |meter, given| {
            let url = parse(text(given, 0))
                .map_err(|message| Failure::new(format!("unable to parse url: {message}")))?;
            shown(meter, &url)
        }),
        "urlJoin" => exactly(&[Dict], |meter, given| {
            let joined = joined(given)?;
            said(meter, joined)
        }),
        _ => None,
    }
}

/// A part of a URL: each has its own characters that need no escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

#[derive(Debug, Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    /// Name, and password if there is one.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

fn escapes(byte: u8, part: Part) -> bool {
    match byte {
        byte if byte.is_ascii_alphanumeric() => false,
        b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'\'' | b'(' | b')' | b'*' => matches!(part, Part::Path | Part::User),
        b'"' | b'<' | b'>' | b'[' | b']' => !matches!(part, Part::Host | Part::Zone),
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Host | Part::Zone => matches!(byte, b'/' | b'?' | b'@'),
            Part::Fragment => false,
        },
        _ => true,
    }
}

/// Escapes characters that need it.
fn escaped(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        let needed = match (part, byte) {
            (Part::Path | Part::Fragment, b'!' | b'\'' | b'(' | b')' | b'*') => {
                *byte != b'*' && part == Part::Path && *byte != b'!'
            }
            (Part::User, b'!' | b'\'' | b'(' | b')' | b'*') => true,
            (Part::Host | Part::Zone, b'!' | b'\'' | b'(' | b')' | b'*') => false,
            _ => escapes(*byte, part),
        };
        if needed {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

fn unescaped(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    let host = matches!(part, Part::Host | Part::Zone);
    while let Some(byte) = text.get(at).copied() {
        if byte != b'%' {
            let bad = matches!(
                byte,
                b' ' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'/' | b'?' | b'@' | b'#' | b'%'
            );
            if host && bad {
                return Err(format!("invalid character {:?} in host name", char::from(byte)));
            }
            out.push(byte);
            at += 1;
            continue;
        }
        let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let wrong = || {
            let end = text.len().min(at + 3);
            format!("invalid URL escape {:?}", runes::lossy(&text[at..end]))
        };
        let (high, low) = digit(at + 1).zip(digit(at + 2)).ok_or_else(wrong)?;
        let value = (high * 16 + low) as u8;
        if part == Part::Host && high < 8 && value != b'%' {
            return Err(wrong());
        }
        if part == Part::Zone && value != b'%' && value != b' ' && escapes(value, Part::Host) {
            return Err(wrong());
        }
        out.push(value);
        at += 3;
    }
    Ok(out)
}

fn cut(text: &[u8], sign: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == sign) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The scheme and what follows its colon.
fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

fn parse(text: &[u8]) -> Result<Url, String> {
    let mut url = Url::default();
    let (whole, fragment) = cut(text, b'#');
    if whole.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if whole == b"*" {
        url.path = b"*".to_vec();
    } else {
        let (name, rest) = scheme(whole)?;
        url.scheme = name.to_ascii_lowercase();
        let (rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or(b"").to_vec();
        located(&mut url, rest)?;
    }
    url.fragment = unescaped(fragment.unwrap_or(b""), Part::Fragment)?;
    Ok(url)
}

/// Authority and path.
fn located(url: &mut Url, rest: &[u8]) -> Result<(), String> {
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(());
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    if (!url.scheme.is_empty() || !rest.starts_with(b"///")) && rest.starts_with(b"//") {
        let end = rest[2..]
            .iter()
            .position(|byte| *byte == b'/')
            .map_or(rest.len(), |at| at + 2);
        path = &rest[end..];
        authority(url, &rest[2..end])?;
    }
    url.path = unescaped(path, Part::Path)?;
    Ok(())
}

fn authority(url: &mut Url, text: &[u8]) -> Result<(), String> {
    let Some(at) = text.iter().rposition(|byte| *byte == b'@') else {
        url.host = host(&url.scheme, text)?;
        return Ok(());
    };
    url.host = host(&url.scheme, &text[at + 1..])?;
    let user = &text[..at];
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    if !user.iter().all(good) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = cut(user, b':');
    let password = password
        .map(|password| unescaped(password, Part::User))
        .transpose()?;
    url.user = Some((unescaped(name, Part::User)?, password));
    Ok(())
}

fn port(text: &[u8]) -> Result<(), String> {
    match text.split_first() {
        None => Ok(()),
        Some((b':', digits)) if digits.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(format!("invalid port {:?} after host", runes::lossy(text))),
    }
}

fn host(scheme: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    match text.iter().rposition(|byte| *byte == b'[') {
        None => {}
        Some(0) => return literal(text),
        Some(_) => return Err("invalid IP-literal".to_owned()),
    }
    let first = text.iter().position(|byte| *byte == b':');
    let last = text.iter().rposition(|byte| *byte == b':');
    let at = if matches!(scheme, b"http" | b"https") {
        first
    } else {
        last
    };
    if let Some(at) = at {
        port(&text[at..])?;
    }
    unescaped(text, Part::Host)
}

/// An address in brackets.
fn literal(text: &[u8]) -> Result<Vec<u8>, String> {
    let close = text
        .iter()
        .rposition(|byte| *byte == b']')
        .ok_or("missing ']' in host")?;
    port(&text[close + 1..])?;
    let inside = &text[1..close];
    let name = match bytes::find(inside, b"%25") {
        Some(at) => [
            unescaped(&inside[..at], Part::Host)?,
            unescaped(&inside[at..], Part::Zone)?,
        ]
        .concat(),
        None => unescaped(inside, Part::Host)?,
    };
    let shown = runes::lossy(&name);
    let (address, zone) = match shown.split_once('%') {
        Some((address, zone)) => (address.to_owned(), Some(zone.to_owned())),
        None => (shown.clone(), None),
    };
    if address.parse::<Ipv6Addr>().is_err() || zone.is_some_and(|zone| zone.is_empty()) {
        return Err(format!("invalid host: ParseAddr({shown:?})"));
    }
    Ok([b"[", name.as_slice(), b"]", &text[close + 1..]].concat())
}

/// The host without port and brackets.
fn hostname(host: &[u8]) -> &[u8] {
    let mut name = host;
    if let Some(colon) = host.iter().rposition(|byte| *byte == b':')
        && port(&host[colon..]).is_ok()
    {
        name = &host[..colon];
    }
    name.strip_prefix(b"[")
        .and_then(|name| name.strip_suffix(b"]"))
        .unwrap_or(name)
}

fn userinfo(user: &(Vec<u8>, Option<Vec<u8>>)) -> Vec<u8> {
    let mut out = escaped(&user.0, Part::User);
    if let Some(password) = &user.1 {
        out.push(b':');
        out.extend(escaped(password, Part::User));
    }
    out
}

fn shown(meter: &mut Meter, url: &Url) -> Result<Value, Failure> {
    let user = url.user.as_ref().map(userinfo).unwrap_or_default();
    let mut entries = BTreeMap::new();
    for (name, part) in [
        ("scheme", url.scheme.as_slice()),
        ("host", &url.host),
        ("hostname", hostname(&url.host)),
        ("path", &url.path),
        ("query", &url.query),
        ("opaque", &url.opaque),
        ("fragment", &url.fragment),
        ("userinfo", &user),
    ] {
        meter.text(part.len())?;
        entries.insert(value::Text::from(name.as_bytes()), Value::text(part));
    }
    meter.dict(entries)
}

fn joined(given: &[Value]) -> Result<Vec<u8>, Failure> {
    let dict = dict(given, 0);
    let part = |name: &str| match dict.get(name.as_bytes()) {
        None => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(text.to_vec()),
        Some(other) => Err(Failure::new(format!(
            "unable to parse {name} key, must be of type string, but {} found",
            other.kind()
        ))),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        opaque: part("opaque")?,
        user: None,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        fragment: part("fragment")?,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let text = [b"proto://", user.as_slice(), b"@host"].concat();
        url.user = parse(&text)
            .map_err(|message| Failure::new(format!("unable to parse userinfo in dict: {message}")))?
            .user;
    }
    Ok(written(&url))
}

fn written(url: &Url) -> Vec<u8> {
    let mut out = Vec::new();
    if !url.scheme.is_empty() {
        out.extend_from_slice(&url.scheme);
        out.push(b':');
    }
    if !url.opaque.is_empty() {
        out.extend_from_slice(&url.opaque);
    } else {
        let authority = !url.host.is_empty() || url.user.is_some();
        if authority || !url.scheme.is_empty() && !url.path.is_empty() {
            out.extend_from_slice(b"//");
        }
        if let Some(user) = &url.user {
            out.extend(userinfo(user));
            out.push(b'@');
        }
        out.extend(escaped(&url.host, Part::Host));
        let path = if url.path == b"*" {
            b"*".to_vec()
        } else {
            escaped(&url.path, Part::Path)
        };
        if !path.is_empty() && path[0] != b'/' && !url.host.is_empty() {
            out.push(b'/');
        }
        if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
            out.extend_from_slice(b"./");
        }
        out.extend(path);
    }
    if !url.query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&url.query);
    }
    if !url.fragment.is_empty() {
        out.push(b'#');
        out.extend(escaped(&url.fragment, Part::Fragment));
    }
    out
}
