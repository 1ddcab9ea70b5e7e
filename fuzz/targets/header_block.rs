//! Properties of [`spdy_fuzz::header_block`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::header_block::check(input));
