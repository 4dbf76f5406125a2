//! Lists that the agent answers page by page.

use crate::failure::Failure;

/// Items per request. 100: no list of the agent gives fewer at once.
const PAGE_SIZE: u32 = 100;

/// The first items up to `limit`, and whether there are more. `fetch` asks for a page of at most so many items after a
/// token, which is empty for the first page; it returns them with the token of the next page, which is empty after the
/// last one.
///
/// # Errors
/// Those of `fetch`.
pub(super) async fn up_to<T, F>(
    limit: u32,
    mut fetch: impl FnMut(u32, String) -> F,
) -> Result<(Vec<T>, bool), Failure>
where
    F: Future<Output = Result<(Vec<T>, String), Failure>>,
{
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let left = u32::try_from(limit - found.len()).unwrap_or(PAGE_SIZE);
        let (items, next) = fetch(left.min(PAGE_SIZE), token).await?;
        found.extend(items);
        if next.is_empty() || found.len() >= limit {
            found.truncate(limit);
            return Ok((found, !next.is_empty()));
        }
        token = next;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn pages_are_asked_for_until_there_are_enough() {
        for (limit, there, expected, more) in
            [(3, 250, 3, true), (250, 250, 250, false), (999, 250, 250, false), (100, 250, 100, true)]
        {
            let requests = Cell::new(0);
            let fetch = |size: u32, token: String| {
                requests.set(requests.get() + 1);
                assert!(size <= PAGE_SIZE);
                let from: u32 = token.parse().unwrap_or(0);
                let end = (from + size).min(there);
                let next = if end < there { end.to_string() } else { String::new() };
                async move { Ok(((from..end).collect::<Vec<u32>>(), next)) }
            };
            let (found, has_more) = up_to(limit, fetch).await.unwrap();
            assert_eq!((found, has_more), ((0..expected).collect(), more), "{limit}");
            assert!(requests.get() <= 3);
        }
    }
}
