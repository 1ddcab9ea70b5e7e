//! Properties of [`spdy_fuzz::frame`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::frame::check(input));
