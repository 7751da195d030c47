//! Fuzzes `admission_review`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tributary_fuzz::decoders::admission_review(bytes);
});
