//! Properties of [`spdy_fuzz::session`] for a server, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::session::check_server(input));
