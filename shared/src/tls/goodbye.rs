//! Owns: the words, in HTTP/2, with which a connection is refused whose handshake is finished.
//! Never: speaks HTTP/2 otherwise: that is the server's.

/// Frames of RFC 9113: a header of nine bytes, which names no stream.
const SETTINGS: u8 = 0x4;
const GO_AWAY: u8 = 0x7;
/// "The endpoint detected that its peer is exhibiting a behavior that might be generating excessive load."
const ENHANCE_YOUR_CALM: u32 = 0xb;
/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 512;

/// The frames with which a server begins and at once ends a connection, with the reason in words. A client shows it in
/// the error of its call.
pub(super) fn go_away(reason: &str) -> Vec<u8> {
    let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)];
    let mut payload = Vec::new();
    // The last stream that was served: none.
    payload.extend(0_u32.to_be_bytes());
    payload.extend(ENHANCE_YOUR_CALM.to_be_bytes());
    payload.extend(reason);
    let mut frames = frame(SETTINGS, &[]);
    frames.extend(frame(GO_AWAY, &payload));
    frames
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, 0];
    frame.extend(0_u32.to_be_bytes());
    frame.extend(payload);
    frame
}
