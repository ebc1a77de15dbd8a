//! The methods of a test, and their names.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The e-process of a test. All methods keep the promised error; they differ in the number of trials that they need.
///
/// The exact mean number of trials until a decision (`examples/sample_numbers.rs` prints more):
///
/// | threshold, rate, error | Robbins | centred | one-sided | balanced | mixture |
/// | --- | --- | --- | --- | --- | --- |
/// | 0.98, 0.993, 1e-3 | 2055 | 1403 | 1339 | 1400 | 1390 |
/// | 0.99, 0.999, 1e-3 | 1910 | 1161 | 1201 | 1255 | 1175 |
/// | 0.99, 0.999, 1e-6 | 2960 | 2216 | 2261 | 2309 | 2232 |
/// | 0.95, 0.97, 0.05 | 1401 | 823 | 723 | 841 | 836 |
/// | 0.98, 0.83, 0.05 | 19.8 | 34.0 | 19.8 | 19.8 | 28.5 |
/// | 0.98, 0.96, 1e-3 | 1361 | 1133 | 1358 | 1361 | 1165 |
///
/// At the threshold itself, "one-sided" has up to twice the error; the other methods keep the error there, too.
///
/// The same for two thresholds, 0.96 and 0.98, and an error of 1e-3 for each:
///
/// | rate | Robbins | one-sided | SPRT | blend |
/// | --- | --- | --- | --- | --- |
/// | 0.95 | 637 | 636 | 475 | 508 |
/// | 0.96 | 1361 | 1357 | 900 | 979 |
/// | 0.97 | 4113 | 3380 | 3270 | 2906 |
/// | 0.98 | 1758 | 1220 | 1089 | 1131 |
/// | 0.99 | 669 | 467 | 513 | 477 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// For each direction, a mixture of the alternatives on its side, with more weight near the threshold. The shares
    /// of the error are computed so that at the threshold the two mixtures together stop with a probability of nearly
    /// `eps`, and at most `eps`. This is the default for one threshold: it takes about as many trials as a
    /// beta-binomial mixture tuned to the true rate.
    Mixture,
    /// For each direction, a uniform mixture of the alternatives on its side. The shares of the error are such that at
    /// the threshold the two mixtures together stop with a probability of at most `eps`. It is as fast as Robbins'
    /// criterion towards the wider side, and faster towards the narrower side.
    Balanced,
    /// Robbins' criterion: a uniform mixture of all alternatives. See [`robbins`](crate::robbins).
    Robbins,
    /// A Beta mixture with its mean at the threshold: fast for rates close to the threshold, slow for others.
    Centred,
    /// The mixtures of [`Balanced`](Method::Balanced), each with the **whole** error. At any rate other than the
    /// threshold, a wrong direction still has a probability of at most `eps`. But exactly at the threshold, where both
    /// directions are wrong, the test stops with a probability of up to `2 eps`.
    OneSided,
    /// Wald's sequential probability ratio test: the likelihood ratio of one threshold to the other. Needs two
    /// thresholds.
    Sprt,
    /// Half Wald's test, half the mixtures of [`OneSided`](Method::OneSided). It is nearly as fast as Wald's test
    /// outside the two thresholds, but without its long wait at rates in between. This is the default for two
    /// thresholds.
    Blend,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 7] = [
        Method::Mixture,
        Method::Balanced,
        Method::Robbins,
        Method::Centred,
        Method::OneSided,
        Method::Sprt,
        Method::Blend,
    ];

    /// The name that [`Display`](fmt::Display) writes and [`FromStr`] reads.
    fn name(self) -> &'static str {
        match self {
            Method::Mixture => "mixture",
            Method::Balanced => "balanced",
            Method::Robbins => "robbins",
            Method::Centred => "centred",
            Method::OneSided => "one-sided",
            Method::Sprt => "sprt",
            Method::Blend => "blend",
        }
    }

    /// Whether the method needs a second threshold, as the alternative.
    pub(crate) fn needs_two_thresholds(self) -> bool {
        matches!(self, Method::Sprt | Method::Blend)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Method::ALL
            .into_iter()
            .find(|method| method.name() == name)
            .ok_or_else(|| Error::UnknownMethod { found: name.to_owned() })
    }
}
