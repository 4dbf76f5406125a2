//! Any bytes, as structured content: JSON stays JSON of the same shape, and safe.
#![no_main]

#[path = "../../tests/common/decode.rs"]
mod decode;
#[path = "../../tests/common/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::fuzz_json(data));
