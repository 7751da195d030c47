//! Fuzzes `snapshot_row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::snapshot_row(bytes);
});
