//! Fuzzes `agent_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::agent_message(bytes);
});
