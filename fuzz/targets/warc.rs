//! Properties of [`spdy_fuzz::page`] for WARCs that are not ours, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::page::check_file(input));
