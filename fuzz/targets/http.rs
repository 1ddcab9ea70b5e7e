//! Properties of [`spdy_fuzz::http`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::http::check(input));
