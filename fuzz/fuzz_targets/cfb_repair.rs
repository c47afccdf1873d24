//! libFuzzer drives [`sector_fuzz::cfb_repair`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sector_fuzz::cfb_repair(data));
