//! One order of several, by reciprocal rank fusion: of tools, and of memories.
//!
//! Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
//! methods, SIGIR 2009. Only ranks count, since scores of words and of vectors have no common scale.

/// How slowly a rank counts less. The paper's 60 is for orders of equal worth with a thousand places; of 10,
/// what one order has first is found although the other does not have it. From the half of the tools' fixture
/// that is for tuning.
const SMOOTHING: f64 = 10.0;
/// How far down each order is read. What neither has among its first hundred is not found; further down, an
/// order says nothing.
const DEPTH: usize = 100;

/// The scores of places, each the sum of `weight / (10 + rank)` over the orders that have it; 0 in none of
/// them.
pub(crate) fn fuse(places: usize, orders: &[(f64, Vec<usize>)]) -> Vec<f64> {
    let mut scores = vec![0.0; places];
    for (weight, order) in orders {
        for (rank, place) in order.iter().take(DEPTH).enumerate() {
            scores[*place] += weight / (SMOOTHING + rank as f64 + 1.0);
        }
    }
    scores
}

/// The places with a score above 0, the best first.
pub(crate) fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|place| scores[*place] > 0.0).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_orders_have_is_first() {
        let fused = fuse(4, &[(1.0, vec![0, 1, 2]), (1.0, vec![3, 1])]);
        assert_eq!(order(&fused), [1, 0, 3, 2]);
        assert_eq!(order(&fuse(2, &[(1.0, vec![]), (1.0, vec![])])), [0; 0]);
        assert_eq!(order(&[0.0, 2.0, 2.0, 3.0]), [3, 1, 2]);
    }

    #[test]
    fn an_order_without_weight_does_not_count() {
        let fused = fuse(3, &[(0.0, vec![0, 1]), (1.0, vec![2, 1])]);
        assert_eq!(order(&fused), [2, 1]);
    }
}
