//! Fuzzes `desired_item`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::desired_item(bytes);
});
