//! Any bytes, cut off and put together: prefixes, cuts and pairs of outputs are safe.
#![no_main]

#[path = "../../tests/common/decode.rs"]
mod decode;
#[path = "../../tests/common/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::fuzz_join(data));
