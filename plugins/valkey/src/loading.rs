//! A server that has started and still reads its data from the disk.

use redis::RedisError;

/// The server is not ready yet.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the server is still loading its data from the disk: it is asked again until it is done")]
pub(crate) struct Loading;

/// Whether a server said so. It does nothing else until then.
pub(crate) fn is_loading(error: &RedisError) -> bool {
    error.code() == Some("LOADING")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-176
    #[test]
    fn a_server_that_loads_is_told_from_one_that_refuses() {
        let error = |line: &[u8]| {
            let value = redis::parse_redis_value(line).expect("an answer");
            value.extract_error().expect_err("an error")
        };
        assert!(is_loading(&error(b"-LOADING Redis is loading the dataset in memory\r\n")));
        assert!(!is_loading(&error(b"-NOAUTH Authentication required.\r\n")));
        assert!(!is_loading(&error(b"-ERR loading\r\n")));
    }
}
