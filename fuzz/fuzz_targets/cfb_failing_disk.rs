//! libFuzzer drives [`sector_fuzz::cfb_failing_disk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sector_fuzz::cfb_failing_disk(data));
