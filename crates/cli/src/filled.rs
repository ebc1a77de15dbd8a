//! Values of the flow's non-exhaustive structs, which other crates cannot write as literals because fields may be
//! added.

/// Returns a struct with these fields and the default values of the others.
macro_rules! filled {
    ($struct:ident { $($field:ident: $value:expr),+ $(,)? }) => {{
        let mut filled = $struct::default();
        $(filled.$field = $value;)+
        filled
    }};
}
pub(crate) use filled;
