//! Divides a budget of tokens among texts.

/// Divides a budget among texts of these sizes: a text smaller than an even share gets its size, and the
/// others share the rest.
#[must_use]
pub fn shares(sizes: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_unstable_by_key(|&i| sizes[i]);
    let (mut left, mut shares) = (budget, vec![0; sizes.len()]);
    for (done, &i) in order.iter().enumerate() {
        let even = left / (sizes.len() - done);
        shares[i] = sizes[i].min(even);
        left -= shares[i];
    }
    shares
}
