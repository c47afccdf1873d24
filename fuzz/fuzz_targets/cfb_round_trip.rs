//! libFuzzer drives [`sector_fuzz::cfb_round_trip`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sector_fuzz::cfb_round_trip(data));
