//! Properties of [`spdy_fuzz::dns`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::dns::check_query(input));
