//! Properties of [`spdy_fuzz::rewrite`] for moved URLs, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::rewrite::check_proxied_url(input));
