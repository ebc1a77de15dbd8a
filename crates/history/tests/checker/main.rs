//! The checker as its users see it, beside objects that are not its own specifications.
//!
//! | file | property |
//! | --- | --- |
//! | [`ambiguous`] | orders that no answer tells apart do not make a history hard |
//! | [`explained`] | what is told of a failure is what is to blame for it |
//! | [`formats`] | what is written is read back, what is malformed is refused at its line |
//! | [`long`] | one violation among many operations is found, many are explained, and limits are kept |
//! | [`oracle`] | the verdict is that of a checker which tries every order |
//! | [`pending`] | what had not returned neither hides a failure nor is blamed for one |
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
