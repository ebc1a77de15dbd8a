//! Tests of the public checker. They compare it with objects that are independent of its specifications.
//!
//! | file | property |
//! | --- | --- |
//! | [`ambiguous`] | orders that no answer distinguishes do not make a history hard |
//! | [`explained`] | the explanation of a failure has only operations that cause it |
//! | [`formats`] | a history that was written can be read, a malformed one is rejected at its line |
//! | [`long`] | one violation among many operations is found, many are explained, and limits are respected |
//! | [`oracle`] | the verdict is that of a checker that tries every order |
//! | [`pending`] | pending operations neither hide a failure nor are blamed for one |
//! | [`planted`] | every kind of violation is found and shown in a few operations |
//! | [`turns`] | a hard object neither hides another's failure nor exceeds the limits of an explanation |
//! | [`valid`] | histories of correct objects are accepted |

mod ambiguous;
mod explained;
mod formats;
mod long;
mod oracle;
mod pending;
mod planted;
mod support;
mod turns;
mod valid;
