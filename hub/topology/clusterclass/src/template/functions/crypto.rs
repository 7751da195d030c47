//! Owns: checksums, and the functions of secrets that give the same result every time.

use sha2::{Digest, Sha256, Sha512};

use super::{
    super::{
        limits::Failure,
        meter::Meter,
        runes,
        signature::{
            Signature,
            Type::{Text, Uint32},
            any, exactly, said, text,
        },
        value::Value,
    },
    aes, base, scrypt, sha1,
};

/// Steps that [`scrypt`] counts for: it takes as long as many thousand others.
const SCRYPT_STEPS: u64 = 200_000;

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "sha1sum" => exactly(&[Text], |meter, given| {
            said(meter, hex(&sha1::digest(text(given, 0))))
        }),
        "sha256sum" => exactly(&[Text], |meter, given| {
            said(meter, hex(&Sha256::digest(text(given, 0))))
        }),
        "sha512sum" => exactly(&[Text], |meter, given| {
            said(meter, hex(&Sha512::digest(text(given, 0))))
        }),
        "adler32sum" => exactly(&[Text], |meter, given| {
            said(meter, adler32(text(given, 0)).to_string())
        }),
        "derivePassword" => exactly(&[Uint32, Text, Text, Text, Text], |meter, given| {
            let password = derived(meter, given)?;
            said(meter, password)
        }),
        "decryptAES" => exactly(&[Text, Text], |meter, given| {
            let plain = decrypted(text(given, 0), text(given, 1)).map_err(Failure::new)?;
            said(meter, plain)
        }),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    high << 16 | low
}

fn decrypted(password: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut key = [0; 32];
    for (into, byte) in key.iter_mut().zip(password) {
        *into = *byte;
    }
    let bytes = base::decode64(text).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    let wrong = "the encrypted text is not made of whole blocks".to_owned();
    let (start, rest) = bytes.split_at_checked(aes::BLOCK).ok_or(wrong.clone())?;
    if rest.is_empty() || rest.len() % aes::BLOCK != 0 {
        return Err(wrong);
    }
    let mut plain = aes::decrypt(&key, start, rest);
    let padding = usize::from(plain.last().copied().unwrap_or(0));
    let length = plain
        .len()
        .checked_sub(padding)
        .ok_or("the padding is longer than the text".to_owned())?;
    plain.truncate(length);
    Ok(plain)
}

/// Patterns for passwords of each kind: one letter for each class of characters.
fn templates(kind: &[u8]) -> &'static [&'static str] {
    match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => &[],
    }
}

fn characters(class: char) -> &'static [u8] {
    match class {
        'V' => b"AEIOU",
        'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        'v' => b"aeiou",
        'c' => b"bcdfghjklmnpqrstvwxyz",
        'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        'n' => b"0123456789",
        'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A password by the "master password" algorithm.
fn derived(meter: &mut Meter, given: &[Value]) -> Result<Vec<u8>, Failure> {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let templates = templates(text(given, 1));
    if templates.is_empty() {
        let kind = runes::lossy(text(given, 1));
        return Ok(format!("cannot find password template {kind}").into_bytes());
    }
    meter.step(SCRYPT_STEPS)?;
    let counter = match any(given, 0) {
        Value::Uint64(counter) => *counter as u32,
        _ => 0,
    };
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let (password, user, site) = (text(given, 2), text(given, 3), text(given, 4));
    let key = scrypt::key(password, &[SEED, &length(user), user].concat());
    let seed = scrypt::hmac(&key, &[SEED, &length(site), site, &counter.to_be_bytes()]);
    let template = templates[usize::from(seed[0]) % templates.len()];
    let pick = |(class, seed): (char, &u8)| {
        let from = characters(class);
        from[usize::from(*seed) % from.len()]
    };
    Ok(template.chars().zip(&seed[1..]).map(pick).collect())
}
