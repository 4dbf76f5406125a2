//! One vector of a text, in a quarter of its size.

use std::sync::Arc;

/// The vector of a text, a signed byte for each number, scaled so that the largest is 127 or -127: directions are
/// all that is compared. On the fixture of 1,000 tools that changes no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector(Arc<[i8]>);

impl Vector {
    /// Of the numbers that a model gave.
    #[must_use]
    pub fn of(numbers: &[f32]) -> Self {
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = f32::from(i8::MAX) / largest.max(f32::MIN_POSITIVE);
        Self(numbers.iter().map(|number| (number * scale).round() as i8).collect())
    }

    /// Of stored bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| i8::from_le_bytes([*byte])).collect())
    }

    /// As it is stored: a byte for each number.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// How many numbers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As pgvector reads it: `[1,-2]`.
    pub(crate) fn to_text(&self) -> String {
        let numbers: Vec<String> = self.0.iter().map(i8::to_string).collect();
        format!("[{}]", numbers.join(","))
    }

    /// The cosine of the angle between two, from -1 to 1; `None` if their lengths differ or one is zero.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> Option<f32> {
        let dot = |a: &Self, b: &Self| -> i64 {
            a.0.iter().zip(&*b.0).map(|(a, b)| i64::from(*a) * i64::from(*b)).sum()
        };
        let lengths = (dot(self, self) as f64 * dot(other, other) as f64).sqrt();
        (self.0.len() == other.0.len() && lengths > 0.0).then(|| (dot(self, other) as f64 / lengths) as f32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn directions_are_kept(a in prop::collection::vec(-1.0_f32..1.0, 64), b in prop::collection::vec(-1.0_f32..1.0, 64)) {
            let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            let exact = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
            let (a, b) = (Vector::of(&a), Vector::of(&b));
            prop_assert!((a.cosine(&b).expect("lengths are the same") - exact).abs() < 0.02);
            prop_assert_eq!(Vector::from_bytes(&a.to_bytes()), a);
        }
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        assert_eq!(Vector::of(&[1.0, 0.0]).cosine(&Vector::of(&[1.0])), None);
        assert_eq!(Vector::of(&[0.0]).cosine(&Vector::of(&[1.0])), None);
        assert_eq!(Vector::of(&[1e-30, 0.0]).cosine(&Vector::of(&[5.0, 0.0])), Some(1.0));
    }
}
