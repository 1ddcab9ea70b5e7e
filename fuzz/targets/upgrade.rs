//! Properties of [`spdy_fuzz::upgrade`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::upgrade::check(input));
