//! Properties of [`spdy_fuzz::qpack`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::qpack::check(input));
