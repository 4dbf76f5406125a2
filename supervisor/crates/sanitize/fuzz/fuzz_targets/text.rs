//! Any bytes, as the text of an answer: every promise of the crate has to hold.
#![no_main]

#[path = "../../tests/common/decode.rs"]
mod decode;
#[path = "../../tests/common/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::fuzz_one(data));
