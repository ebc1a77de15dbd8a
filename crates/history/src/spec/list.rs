//! A list that shares its tail with the list from which it was made.
//!
//! A search has millions of states, each of which differs from another by one or two elements. Copies would take memory
//! proportional to their length; here a new state is one node. A list stores its length and its hash, so that unequal
//! lists are usually distinguished immediately. Equal lists are compared only up to their shared tail.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::value::Value;

/// A list of values. The last pushed value is first.
#[derive(Clone, Default)]
pub(crate) struct List {
    head: Option<Rc<Node>>,
}

struct Node {
    value: Value,
    len: u32,
    hash: u64,
    tail: List,
}

/// The contribution of a value to a hash. Any odd factor that mixes well would do.
pub(super) fn mix(value: Value) -> u64 {
    let bits = value.bits().wrapping_add(0x9e37_79b9_7f4a_7c15);
    (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The base of a list's polynomial hash.
pub(super) const BASE: u64 = 0xd6e8_feb8_6659_fd93;

impl List {
    /// The memory of a node with its two reference counts.
    pub(super) const NODE_BYTES: usize = size_of::<Node>() + 2 * size_of::<usize>();

    pub(super) fn len(&self) -> usize {
        self.head.as_ref().map_or(0, |node| node.len as usize)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    fn hash(&self) -> u64 {
        self.head.as_ref().map_or(0, |node| node.hash)
    }

    /// The list with one more value before it.
    pub(super) fn push(&self, value: Value) -> List {
        let hash = self.hash().wrapping_mul(BASE).wrapping_add(mix(value));
        let node = Node { value, len: self.len() as u32 + 1, hash, tail: self.clone() };
        List { head: Some(Rc::new(node)) }
    }

    /// The first value, and the list of the others.
    pub(super) fn pop(&self) -> Option<(Value, &List)> {
        self.head.as_ref().map(|node| (node.value, &node.tail))
    }

    /// The values, the last pushed first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        std::iter::successors(self.pop(), |(_, tail)| tail.pop()).map(|(value, _)| value)
    }

    /// The values, the first pushed first.
    pub(super) fn oldest_first(&self) -> Vec<Value> {
        let mut values: Vec<Value> = self.iter().collect();
        values.reverse();
        values
    }

    pub(super) fn reversed(&self) -> List {
        self.iter().fold(List::default(), |list, value| list.push(value))
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            match (&a.head, &b.head) {
                (None, None) => return true,
                (Some(x), Some(y)) if Rc::ptr_eq(x, y) => return true,
                (Some(x), Some(y)) if (x.value, x.len, x.hash) == (y.value, y.len, y.hash) => {
                    (a, b) = (&x.tail, &y.tail);
                }
                _ => return false,
            }
        }
    }
}

impl Eq for List {}

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(List::hash(self));
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.oldest_first()).finish()
    }
}

impl Drop for List {
    /// Drops the nodes in a loop. Recursion would need a stack as deep as the list is long.
    fn drop(&mut self) {
        let mut head = self.head.take();
        while let Some(node) = head {
            match Rc::try_unwrap(node) {
                Ok(mut node) => head = node.tail.head.take(),
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[u32]) -> List {
        values.iter().fold(List::default(), |list, &value| list.push(value.into()))
    }

    #[test]
    fn equal_contents_are_equal_lists() {
        assert_eq!(list(&[1, 2, 3]), list(&[1, 2, 3]));
        assert_ne!(list(&[1, 2, 3]), list(&[2, 1, 3]));
        assert_ne!(list(&[1]), list(&[1, 1]));
        assert_eq!(list(&[3, 2, 1]).reversed(), list(&[1, 2, 3]));
        assert_eq!(list(&[1, 2]).push(3.into()).pop(), Some((3.into(), &list(&[1, 2]))));
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        drop(list(&(0..1_000_000).collect::<Vec<_>>()));
    }
}
