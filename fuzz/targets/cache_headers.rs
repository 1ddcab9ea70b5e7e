//! Properties of [`spdy_fuzz::cache`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::cache::check(input));
