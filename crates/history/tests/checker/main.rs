//! The checker as its users see it, compared with objects other than its own specifications.
//!
//! | file | property |
//! | --- | --- |
//! | [`ambiguous`] | orders that no answer tells apart do not make a history hard |
//! | [`explained`] | a failure's explanation has only operations that cause it |
//! | [`formats`] | a written history reads back, a malformed one is refused at its line |
//! | [`long`] | one violation among many operations is found, many are explained, and limits are kept |
//! | [`oracle`] | the verdict is that of a checker that tries every order |
//! | [`pending`] | pending operations neither hide a failure nor are blamed for one |
//! | [`planted`] | every kind of violation is found and shown in a few operations |
//! | [`turns`] | a hard object neither hides another's failure nor takes more than an explanation's limits |
//! | [`valid`] | histories of correct objects raise no alarm |

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
