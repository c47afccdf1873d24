//! libFuzzer drives [`sector_fuzz::store_ops`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sector_fuzz::store_ops(data));
