//! A number known from both sides.

/// Two floats with the exact value between them: `lower <= value <= upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// No more than the exact value.
    pub lower: f64,
    /// No less than the exact value.
    pub upper: f64,
}
