//! Sparklines: a line of bars, one for each value.

/// The characters for bars, from empty to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '_', '.', ':', '-', '=', '+', '*', '#'];

/// Returns the values as bars. The largest value is a full bar, zero is a line at the bottom, and a missing value is
/// blank.
pub(super) fn spark(values: &[Option<f64>], unicode: bool) -> String {
    let bars = if unicode { &BLOCKS } else { &ASCII };
    let most = most(values);
    let bar = |value: &Option<f64>| match value {
        None => bars[0],
        Some(value) if most > 0.0 => bars[1 + (value / most * 7.0).round().clamp(0.0, 7.0) as usize],
        Some(_) => bars[1],
    };
    values.iter().map(bar).collect()
}

/// Returns the largest value.
pub(super) fn most(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_a_full_bar_and_an_absent_one_is_blank() {
        assert_eq!(spark(&[None, Some(0.0), Some(1.0), Some(2.0)], true), " ▁▅█");
        assert_eq!(spark(&[None, Some(0.0), Some(2.0)], false), " _#");
        assert_eq!(spark(&[Some(0.0), Some(f64::NAN), Some(f64::INFINITY)], true).chars().count(), 3);
        assert_eq!(spark(&[Some(f64::MAX), Some(u64::MAX as f64)], true), "█▁");
    }
}
