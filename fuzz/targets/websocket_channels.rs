//! Properties of [`spdy_fuzz::channels`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::channels::check(input));
