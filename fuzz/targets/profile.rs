//! Properties of [`spdy_fuzz::profile`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::profile::check(input));
