//! Properties of [`spdy_fuzz::capture`] for raw streams, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::capture::check_streams(input));
