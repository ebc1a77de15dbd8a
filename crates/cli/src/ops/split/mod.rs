//! `split`: a unit becomes several, one for each piece of its payload.
//!
//! Pieces are read as they are asked for, and only one is held: any length of payload takes the same memory. A piece that is
//! wrong by itself, such as a line that is too long, comes as a unit that says so, and the next one is read as usual. Where
//! the rest cannot be told from it, the unit that is split fails.

mod block;
mod json;
mod separator;
mod table;
mod tar;

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::model::{SplitBy, SplitSpec};
use crate::json_member::Members;
use crate::payload::Stream;
use crate::printer::Place;
use crate::record::{PieceText, Record, Wanted};
use crate::source::lines::Lines;

/// Bytes asked of a payload at once.
const READ: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Split {
    spec: SplitSpec,
}

impl Split {
    pub(super) fn new(spec: SplitSpec) -> Self {
        Self { spec }
    }

    fn cuts(&self, input: Box<dyn Read + Send>) -> Cuts {
        let most = self.spec.max_bytes;
        let input = BufReader::with_capacity(READ, input);
        match &self.spec.by {
            SplitBy::Lines => Box::new(lines(input, false, most)),
            SplitBy::Nul => Box::new(lines(input, true, most)),
            SplitBy::Separator(separator) => Box::new(separator::Separated::new(input, separator.clone(), most)),
            SplitBy::Blocks(size) => Box::new(block::Blocks::new(input, *size, most)),
            SplitBy::Json => Box::new(json::Values::new(input, most)),
            SplitBy::Table { separator, header } => Box::new(table::Rows::new(input, *separator, *header, most)),
            SplitBy::Tar => Box::new(tar::Members::new(input, most)),
        }
    }
}

impl Op for Split {
    fn run(&self, _: &mut Record, _: &mut Cx<'_>) -> Result<(), Failure> {
        unreachable!("a stage that splits opens its units")
    }

    fn open(&self, record: &mut Record, _: &mut Cx<'_>) -> Result<Pieces, Failure> {
        let line = record.line_text().filter(|_| record.payload.is_empty());
        let stream = match line {
            Some(line) => Stream::of_bytes(line.to_vec(), 0),
            None => record.payload.share(),
        };
        let cuts = self.cuts(stream.reader().map_err(|error| stream.failure(&error))?);
        Ok(Pieces {
            cuts,
            stream,
            parent: record.as_parent(),
            place: record.place.clone(),
            part: 0,
            wanted: record.wanted.clone(),
            next_wanted: 0,
        })
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// A piece as it was cut out of a payload.
#[derive(Debug, Default, PartialEq)]
struct Cut {
    kind: Kind,
    content: Vec<u8>,
    members: Members,
    fault: Option<String>,
}

/// The text that a piece has beside its content.
#[derive(Debug, Default, PartialEq)]
enum Kind {
    /// None.
    #[default]
    Nameless,
    /// The piece is a line, and its content the text.
    Line,
    /// The path of a file.
    Member(Vec<u8>),
}

impl Cut {
    fn of(content: Vec<u8>) -> Self {
        Self { content, ..Self::default() }
    }

    fn wrong(fault: String) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// Why no more pieces can be cut.
#[derive(Debug)]
enum Torn {
    /// The payload cannot be read.
    Unread(io::Error),
    /// The bytes make no sense, for this reason.
    Senseless(String),
}

impl From<io::Error> for Torn {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

type Cuts = Box<dyn Iterator<Item = Result<Cut, Torn>> + Send>;

fn lines(
    input: BufReader<Box<dyn Read + Send>>,
    null: bool,
    most: usize,
) -> impl Iterator<Item = Result<Cut, Torn>> + Send {
    let mut lines = Lines::new(input, "the payload".to_owned(), null).up_to(most);
    std::iter::from_fn(move || match lines.try_next() {
        Ok(Some((content, fault))) => Some(Ok(Cut { kind: Kind::Line, content, fault, ..Cut::default() })),
        Ok(None) => None,
        Err(error) => Some(Err(error.into())),
    })
}

/// The pieces of one unit.
pub(crate) struct Pieces {
    cuts: Cuts,
    /// The payload that they are cut from.
    stream: Stream,
    parent: Arc<Record>,
    place: Option<Arc<Place>>,
    /// The number of the last piece.
    part: u64,
    /// The pieces that a retry wants, and the first of those that have not come yet.
    wanted: Option<Arc<Wanted>>,
    next_wanted: usize,
}

impl Iterator for Pieces {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.wanted.as_ref().is_some_and(|all| self.next_wanted == all.len()) {
                return None;
            }
            let cut = match self.cuts.next() {
                Some(Ok(cut)) => cut,
                Some(Err(torn)) => return Some(Err(self.failure(torn))),
                None => return self.lacks().map(Err),
            };
            self.part += 1;
            let Some((letter, below)) = self.wanted_of_this() else { continue };
            return Some(Ok(self.record(cut, letter, below)));
        }
    }
}

impl Pieces {
    /// The part of this piece that a retry wants: all of it, for the dead letter of a number, or some of its own pieces; `None`: nothing.
    fn wanted_of_this(&mut self) -> Option<(Option<usize>, Option<Arc<Wanted>>)> {
        let Some(all) = &self.wanted else { return Some((None, None)) };
        let from = self.next_wanted;
        let of_this = all[from..].iter().take_while(|(parts, _)| parts.first() == Some(&self.part)).count();
        self.next_wanted += of_this;
        let of_this = &all[from..from + of_this];
        match of_this {
            [] => None,
            // A letter of the piece itself stands for all that it has in it.
            [(parts, letter), ..] if parts.len() == 1 => Some((Some(*letter), None)),
            some => Some((None, Some(some.iter().map(|(parts, letter)| (parts[1..].to_vec(), *letter)).collect()))),
        }
    }

    /// The failure that a piece which a retry wants is not there any more.
    fn lacks(&mut self) -> Option<Failure> {
        let all = self.wanted.take()?;
        let (parts, _) = all.get(self.next_wanted)?;
        let (part, parts) = (parts.first().copied().unwrap_or_default(), self.part);
        Some(Failure::permanent(format!("part {part} is to be run again, and there are only {parts} now")))
    }

    fn record(&self, cut: Cut, letter: Option<usize>, wanted: Option<Arc<Wanted>>) -> Record {
        let Cut { kind, content, members, fault } = cut;
        let text = match kind {
            Kind::Nameless => PieceText::None,
            Kind::Line => PieceText::Line(content.clone()),
            Kind::Member(path) => PieceText::Member(path),
        };
        let mut record = Record::piece(&self.parent, self.part, text);
        record.size = Some(content.len() as u64);
        record.payload = content.into();
        record.json = members;
        record.fault = fault;
        record.place = self.place.as_ref().map(|place| place.piece());
        record.letter = letter;
        record.wanted = wanted;
        record
    }

    fn failure(&self, torn: Torn) -> Failure {
        match torn {
            Torn::Unread(error) => self.stream.failure(&error),
            Torn::Senseless(message) => Failure::permanent(format!("after part {}: {message}", self.part)),
        }
    }
}
