//! Properties of [`spdy_fuzz::http3`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::http3::check(input));
