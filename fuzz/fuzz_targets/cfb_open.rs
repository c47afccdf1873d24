//! libFuzzer drives [`sector_fuzz::cfb_open`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sector_fuzz::cfb_open(data));
