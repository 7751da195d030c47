//! Fuzzes `control_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::control_frames(bytes);
});
