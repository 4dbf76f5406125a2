//! Large files that the next commit would contain. Their sizes come from the repository; which are large is
//! `git.large_file_bytes`.

/// The files that are larger, the largest first; of the same size by name.
pub(crate) fn find(files: &[(String, u64)], limit: u64) -> Vec<(String, u64)> {
    let mut large: Vec<_> = files.iter().filter(|(_, bytes)| *bytes > limit).cloned().collect();
    large.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    large
}

/// A size for people: `12 MiB`.
pub(crate) fn shown(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    let is_whole = |value: u64| value >= 1024 && value.is_multiple_of(1024);
    while unit + 1 < UNITS.len() && (value >= 10 * 1024 || is_whole(value)) {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Promises: SHADOW-58
        #[test]
        fn only_and_all_larger_ones_are_found(sizes in prop::collection::vec(0u64..100, 0..20), limit in 0u64..100) {
            let files: Vec<_> = sizes.iter().enumerate().map(|(n, size)| (n.to_string(), *size)).collect();
            let found = find(&files, limit);
            prop_assert!(found.iter().all(|(_, bytes)| *bytes > limit));
            prop_assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
            prop_assert_eq!(found.len(), sizes.iter().filter(|size| **size > limit).count());
        }
    }

    #[test]
    fn sizes_are_shown_in_whole_units() {
        assert_eq!(
            [shown(5), shown(12 << 20), shown(1 << 30), shown(20_000)],
            ["5 bytes", "12 MiB", "1 GiB", "19 KiB"]
        );
    }
}
