//! Properties of [`spdy_fuzz::rewrite`] for pages and sheets, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::rewrite::check_rewrite_html(input));
