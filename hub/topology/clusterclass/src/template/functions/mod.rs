//! Owns: which functions a template may call: Go's own, and those of sprig that give the same result every time.
//! Never: a clock, a random number, a file, the environment.

mod aes;
mod base;
mod builtins;
mod bytes;
mod cases;
mod compare;
mod constraint;
mod crypto;
mod dates;
mod decimal;
mod dicts;
mod equal;
mod escapes;
mod lists;
mod logic;
mod merge;
mod numeric;
mod paths;
mod pattern;
mod regexes;
mod scrypt;
mod sha1;
mod strings;
mod urls;
mod versions;

pub(crate) use self::regexes::compile;
use super::signature::Signature;

/// A function by name.
pub(crate) fn find(name: &str) -> Option<Signature> {
    builtins::find(name)
        .or_else(|| strings::find(name))
        .or_else(|| cases::find(name))
        .or_else(|| numeric::find(name))
        .or_else(|| logic::find(name))
        .or_else(|| lists::find(name))
        .or_else(|| dicts::find(name))
        .or_else(|| dates::find(name))
        .or_else(|| crypto::find(name))
        .or_else(|| regexes::find(name))
        .or_else(|| paths::find(name))
        .or_else(|| urls::find(name))
        .or_else(|| versions::find(name))
}

/// Functions that upstream calls hermetic although they give another result each time: a class that uses one would
/// replace its templates for ever.
const REFUSED: [&str; 14] = [
    "ago",
    "bcrypt",
    "buildCustomCert",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "htpasswd",
    "randInt",
    "shuffle",
];

/// The function if it is refused.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    REFUSED.iter().copied().find(|refused| *refused == name)
}

/// Returns true if a template may name it: a refused one may be named where it is not reached.
pub(crate) fn exists(name: &str) -> bool {
    refused(name).is_some() || find(name).is_some()
}

/// The message about a function that exists elsewhere but not here.
pub(crate) fn why_not(name: &str) -> &'static str {
    match name {
        "toYaml" | "fromYaml" | "include" | "tpl" | "lookup" | "required" | "toToml" => ": only Helm has it",
        "now" | "date" | "dateInZone" | "date_in_zone" | "dateModify" | "date_modify" | "htmlDate"
        | "htmlDateInZone" | "randAlphaNum" | "randAlpha" | "randAscii" | "randNumeric" | "randBytes"
        | "uuidv4" | "env" | "expandenv" | "getHostByName" => ": it gives another result each time or place",
        _ => "",
    }
}

/// Base 64 with padding; `None` for what is none.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    base::decode64(text.as_bytes()).ok()
}
