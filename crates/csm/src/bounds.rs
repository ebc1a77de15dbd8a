//! A number bounded from both sides.

/// Two floats with the exact value between them: `lower <= value <= upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Not above the exact value.
    pub lower: f64,
    /// Not below the exact value.
    pub upper: f64,
}
