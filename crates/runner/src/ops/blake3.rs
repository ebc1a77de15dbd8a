//! `blake3`: the payload's BLAKE3 hash.

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::payload::Payload;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Blake3;

impl Op for Blake3 {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let hash = match &record.payload {
            Payload::Bytes(bytes) => ::blake3::hash(bytes),
            Payload::Slice(bytes) => ::blake3::hash(bytes),
            Payload::Stream(stream) => stream.blake3(cx)?,
        };
        record.rare.blake3 = Some(*hash.as_bytes());
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use millstream_command::hex;

    use super::Blake3;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    #[test]
    fn the_hash_of_nothing_is_the_published_one() {
        let record = run(Blake3, Record::default()).unwrap();
        let published = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(hex::encode(record.rare.blake3.unwrap()), published);
    }
}
