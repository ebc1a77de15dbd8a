//! Resources, the finite things that units need: tokens, rates, keyed tokens, pools of objects.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::contain::contain;

/// A handle for a resource of one flow. Copies refer to the same resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resource {
    pub(crate) index: u16,
    pub(crate) flow: u64,
}

/// A number of tokens a second, with a burst.
///
/// Tokens of a rate are consumed, not released. In any period of `t` seconds, at most `burst + rate · t` are granted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub(crate) per_second: f64,
    pub(crate) burst: u64,
}

impl Rate {
    /// A rate of `per_second` tokens a second, with a burst of 1.
    pub const fn per_second(per_second: f64) -> Self {
        Rate { per_second, burst: 1 }
    }

    /// Allows up to `tokens` at once after an idle period.
    #[must_use]
    pub const fn burst(mut self, tokens: u64) -> Self {
        self.burst = tokens;
        self
    }

    /// The time that one token takes to arrive, in ns.
    pub(crate) fn period_ns(&self) -> f64 {
        1e9 / self.per_second
    }

    /// Whether rate and burst are positive, finite numbers.
    pub(crate) fn is_valid(&self) -> bool {
        self.per_second.is_finite() && self.per_second > 0.0 && self.burst > 0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s, burst {}", self.per_second, self.burst)
    }
}

/// The supply of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Supply {
    Tokens(u64),
    Rate(Rate),
}

#[derive(Debug, Clone)]
pub(crate) struct ResourceSpec {
    pub(crate) name: String,
    pub(crate) supply: Supply,
    pub(crate) keyed: bool,
    pub(crate) pool: bool,
    pub(crate) max_keys: usize,
}

impl ResourceSpec {
    /// The resource's kind, as reports name it.
    pub(crate) fn kind(&self) -> &'static str {
        match (self.pool, self.keyed, self.supply) {
            (true, ..) => "pool",
            (_, false, Supply::Tokens(_)) => "tokens",
            (_, true, Supply::Tokens(_)) => "keyed tokens",
            (_, false, Supply::Rate(_)) => "rate",
            (_, true, Supply::Rate(_)) => "keyed rate",
        }
    }
}

/// A list of pools, each as the index of its resource.
pub(crate) type Taken = SmallVec<[u16; 4]>;

/// A pool of objects (connections, buffers, contexts): a resource whose tokens are the objects themselves.
///
/// If a stage needs an object, each batch of the stage is granted one before a worker takes the batch. The stage's code
/// takes the object with [`Cx::object`](crate::Cx::object). Clones refer to the same pool.
pub struct Pool<C> {
    pub(crate) resource: Resource,
    pub(crate) objects: Arc<Mutex<Vec<C>>>,
    pub(crate) make: Option<Arc<dyn Fn() -> C + Send + Sync>>,
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Pool { resource: self.resource, objects: self.objects.clone(), make: self.make.clone() }
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl<C> Pool<C> {
    /// Takes an object, and records the pool in `taken`. The caller has been granted an object, so an object is in
    /// the pool or can be made.
    pub(crate) fn take<'p>(&'p self, taken: &'p RefCell<Taken>) -> PoolObject<'p, C> {
        let object = self.lock().pop();
        let object = object.or_else(|| self.make.as_ref().map(|make| make()));
        taken.borrow_mut().push(self.resource.index);
        PoolObject { pool: self, object, taken }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<C>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An object taken from a [`Pool`]. The object returns to the pool when this guard is dropped.
///
/// If the stage's code panics while it has the object, a pool with a factory
/// ([`FlowBuilder::pool_with`](crate::FlowBuilder::pool_with)) drops the object and makes a new one for the next use.
/// A pool without a factory gets the object back unchanged.
#[derive(Debug)]
pub struct PoolObject<'a, C> {
    pool: &'a Pool<C>,
    object: Option<C>,
    taken: &'a RefCell<Taken>,
}

impl<C> Deref for PoolObject<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.object.as_ref().expect("a granted pool has an object")
    }
}

impl<C> DerefMut for PoolObject<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.object.as_mut().expect("a granted pool has an object")
    }
}

impl<C> Drop for PoolObject<'_, C> {
    fn drop(&mut self) {
        self.taken.borrow_mut().retain(|pool| *pool != self.pool.resource.index);
        let Some(object) = self.object.take() else { return };
        if std::thread::panicking() && self.pool.make.is_some() {
            contain(|| drop(object));
        } else {
            self.pool.lock().push(object);
        }
    }
}
