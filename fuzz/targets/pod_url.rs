//! Properties of [`spdy_fuzz::pod_url`], for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::pod_url::check(input));
