//! The maximum size of the content when a stage decompresses the payload of a unit.

use millstream_flow::Failure;

use crate::file::model::MaxBytes;
use crate::record::Record;

/// See the [module](self).
#[derive(Clone, Copy)]
pub(super) struct Limit(u64);

impl Limit {
    /// Content may have any size.
    pub(super) const NONE: Self = Self(u64::MAX);

    /// The limit of this unit.
    ///
    /// # Errors
    /// The unit's field that states the limit is missing or is not a number of bytes.
    pub(super) fn new(max_bytes: Option<&MaxBytes>, record: &Record) -> Result<Self, Failure> {
        Ok(Self(match max_bytes {
            None => return Ok(Self::NONE),
            Some(MaxBytes::Size(bytes)) => *bytes,
            Some(MaxBytes::Field(field)) => {
                let text = field.render(record).map_err(|error| Failure::from(error).to_permanent())?;
                let number = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| {
                    Failure::permanent(format!(
                        "cannot decompress: `max_bytes` is `{field}`, which is `{}` here, not a number of bytes",
                        text.escape_ascii()
                    ))
                })?
            }
        }))
    }

    /// Fails if `size` is too large. `size` is the size of the content, or of the part that was decompressed so far.
    pub(super) fn admit(self, size: u64) -> Result<(), Failure> {
        if size <= self.0 {
            return Ok(());
        }
        let message = format!("cannot decompress: the content has more than `max_bytes`, {}", self.0);
        Err(Failure::permanent(message))
    }
}
