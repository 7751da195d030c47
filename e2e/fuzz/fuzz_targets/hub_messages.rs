//! Fuzzes `hub_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::hub_message(bytes);
});
