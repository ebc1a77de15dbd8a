//! Structs of the flow, which other crates cannot write down: their fields may grow.

/// A struct with these fields; its default has the others.
macro_rules! filled {
    ($struct:ident { $($field:ident: $value:expr),+ $(,)? }) => {{
        let mut filled = $struct::default();
        $(filled.$field = $value;)+
        filled
    }};
}
pub(crate) use filled;
