//! `sha256`: the payload's SHA-256 hash.

use millstream_flow::{Cx, Failure};
use sha2::Digest as _;

use super::Op;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Sha256;

impl Op for Sha256 {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let mut hasher = sha2::Sha256::new();
        record.payload.each(cx, |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        record.rare.sha256 = Some(hasher.finalize().into());
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use millstream_command::hex;

    use super::Sha256;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    #[test]
    fn the_hash_of_abc_is_the_published_one() {
        let record = run(Sha256, Record::holding("abc")).unwrap();
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex::encode(record.rare.sha256.unwrap()), published);
    }
}
