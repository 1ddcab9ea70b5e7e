//! Properties of [`spdy_fuzz::tunnel`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::tunnel::check(input));
