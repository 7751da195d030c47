//! Owns: frames of HTTP/2 by hand, as far as an attacker needs them: such as no library would send.
//! Never: sends them.

/// Kinds of frames (RFC 9113, 6).
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GO_AWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
/// Flags.
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// A reset that means that the client has changed its mind.
pub(super) const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// One frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Headers of a call of the sync service, in HPACK without a table and without compression.
pub(super) fn call() -> Vec<u8> {
    // Method POST and scheme http have numbers; the path's name has number 4, the authority's 1.
    let mut block = vec![0x83, 0x86, 0x04];
    text(&mut block, "/tributary.v1.Sync/Stream");
    block.push(0x01);
    text(&mut block, "hub");
    block.push(0x00);
    text(&mut block, "content-type");
    text(&mut block, "application/grpc");
    block.push(0x00);
    text(&mut block, "te");
    text(&mut block, "trailers");
    block
}

/// A header of our own with a value of so many bytes (below 127).
pub(super) fn padding(bytes: usize) -> Vec<u8> {
    let mut block = vec![0x00];
    text(&mut block, "x-padding");
    text(&mut block, &"x".repeat(bytes));
    block
}

fn text(block: &mut Vec<u8>, text: &str) {
    // Up to 126 bytes the length is one byte.
    block.push(text.len() as u8);
    block.extend(text.as_bytes());
}
