//! Properties of [`spdy_fuzz::page`] for NetLogs and the browser's report, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spdy_fuzz::page::check_netlog(input));
