//! A list of all wait strategies.

use millstream_ring::WaitStrategy;

pub(crate) const STRATEGIES: [WaitStrategy; 4] =
    [WaitStrategy::Adaptive, WaitStrategy::Block, WaitStrategy::Yield, WaitStrategy::Spin];
