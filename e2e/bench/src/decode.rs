//! Owns: shape decode: the processor time of every decoder that a peer reaches, for inputs of the largest size that are
//! made to be hard. It fails if one takes too long: a worker of the hub does nothing else meanwhile.
//! Never: has a decoder of its own.

// The file is of a library that publishes them.
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/decoders.rs"]
mod decoders;

use std::time::Duration;

use anyhow::{Context, ensure};
use prost::encoding::{WireType, encode_key, encode_varint};
use shared::model::sync::MESSAGE_BYTES_MAX;

use self::decoders::{Decoder, TARGETS};
use super::{figure::Aim, report::Section};

/// Longest time for one input.
const DECODE_MAX: Duration = Duration::from_millis(50);
/// A slow one is measured again: another program may have had the caches.
const TRIES: usize = 5;
/// Fields of a message that are tried.
const FIELDS_MAX: u32 = 16;
/// Bytes of a review that the webhook reads.
const REVIEW_BYTES: usize = 3 * 1024 * 1024;

/// Measures every decoder.
pub(super) fn measure() -> anyhow::Result<Section> {
    let mut section = Section::begin("decode, 4 MiB of what is hard");
    let mut broken = Vec::new();
    for (target, decoder) in TARGETS {
        let bytes = match target {
            "admission_reviews" => REVIEW_BYTES,
            _ => MESSAGE_BYTES_MAX,
        };
        let (took, input) = slowest(decoder, bytes)?;
        let millis = took.as_secs_f64() * 1e3;
        println!("{target:<20} {millis:>8.1} ms  {input}");
        let aim = Aim::Below(DECODE_MAX.as_secs_f64() * 1e3);
        section.aimed(format!("{target}: the slowest"), millis, "ms", aim);
        if took >= DECODE_MAX {
            broken.push(format!("{target}: {millis:.0} ms for {input}"));
        }
    }
    ensure!(
        broken.is_empty(),
        "{} ms are allowed: {}",
        DECODE_MAX.as_millis(),
        broken.join("; ")
    );
    Ok(section)
}

/// The longest time, and for which input.
fn slowest(decoder: Decoder, bytes: usize) -> anyhow::Result<(Duration, String)> {
    let mut slowest = (Duration::ZERO, String::new());
    for (name, input) in inputs(bytes) {
        let mut took = processor_time(decoder, &input)?;
        for _ in 1..TRIES {
            if took < DECODE_MAX / 2 {
                break;
            }
            took = took.min(processor_time(decoder, &input)?);
        }
        if took > slowest.0 {
            slowest = (took, name);
        }
    }
    Ok(slowest)
}

/// Processor time of this thread, which other programs do not change.
fn processor_time(decoder: Decoder, input: &[u8]) -> anyhow::Result<Duration> {
    let began = now()?;
    let _ = std::hint::black_box(decoder(std::hint::black_box(input)));
    Ok(now()?.saturating_sub(began))
}

fn now() -> anyhow::Result<Duration> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = figures.split_whitespace().next().context("schedstat is empty")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Inputs of so many bytes, with a name: what a field of a message holds again and again, nested, or as text.
fn inputs(bytes: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    let parts: [(&str, &[u8]); 12] = [
        ("empty fields 1", b"\x0a\x00"),
        ("empty fields 2", b"\x12\x00"),
        ("empty fields 3", b"\x1a\x00"),
        ("short fields 1", b"\x0a\x03\x0a\x01a"),
        ("short fields 2", b"\x12\x03\x0a\x01a"),
        ("numbers", b"\x08\x01"),
        ("groups", b"\x0b"),
        ("not UTF-8", b"\xff"),
        ("objects", b"{a: "),
        ("arrays", b"["),
        ("elements", b"0,"),
        ("entries", b"- a\n"),
    ];
    let repeated = move |part: &[u8]| part.repeat(bytes.saturating_sub(16) / part.len());
    let bare = parts.map(|(name, part)| (name.to_owned(), repeated(part)));
    let fields = (1..=FIELDS_MAX).flat_map(move |number| {
        parts.map(|(name, part)| {
            (
                format!("{name} in field {number}"),
                field(number, &repeated(part)),
            )
        })
    });
    let nested = (1..=FIELDS_MAX).flat_map(move |outer| {
        (1..=4).map(move |inner| {
            let content = field(inner, &b"\x0a\x00".repeat(bytes.saturating_sub(32) / 2));
            (
                format!("empty fields in {inner} of {outer}"),
                field(outer, &content),
            )
        })
    });
    let review = |element: &str| {
        let head = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"a":["#;
        let count = bytes.saturating_sub(head.len() + 32) / element.len();
        format!("{head}{}0]}}}}}}", element.repeat(count)).into_bytes()
    };
    let reviews =
        ["0,", "{},", "\"\",", "{\"a\":1},"].map(|part| (format!("a review of {part}"), review(part)));
    bare.into_iter().chain(fields).chain(nested).chain(reviews)
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 16);
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}
