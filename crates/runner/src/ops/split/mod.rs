//! `split`: a unit becomes several, one for each piece of its payload.
//!
//! Pieces are read on demand, and only one piece or a kilobyte of short lines is in memory. So the memory does not
//! depend on the length of the payload. A faulty piece, such as a line that is too long, becomes a unit that carries
//! the fault, and the next piece is read as usual. If the end of a faulty piece cannot be found, the whole unit fails.

pub mod block;
mod json;
mod matches;
mod separator;
mod table;
mod tar;
mod zip;

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use millstream_flow::{Cx, Failure};
use regex::bytes::Regex;

use super::Op;
use crate::file::model::{SplitBy, SplitSpec};
use crate::json_member::Members;
use crate::payload::{Payload, Stream};
use crate::printer::Place;
use crate::record::{Parent, PieceText, PiecesSoFar, Record, Wanted, WantedPiece};
use crate::source::lines::Lines;

/// The maximum depth of pieces of pieces. The limit ends a cycle of stages that would otherwise split forever.
const MAX_LEVELS: u32 = 100;

/// The number of pieces that share one reference count of their parent unit. It is about the size of a batch.
const PIECES_TOGETHER: u64 = 64;

/// The number of bytes of a payload that one read asks for.
const READ: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Split {
    spec: SplitSpec,
    /// The regular expression, if the pieces are separated by its matches.
    separator: Option<Regex>,
}

impl Split {
    pub(super) fn new(spec: SplitSpec) -> Self {
        let separator = match &spec.by {
            SplitBy::Matches(expression) => Some(Regex::new(expression).expect("the parser has understood it")),
            _ => None,
        };
        Self { spec, separator }
    }

    fn cuts(&self, stream: &Stream) -> io::Result<Cuts> {
        let most = self.spec.max_bytes;
        if let (SplitBy::Zip, Some(archive)) = (&self.spec.by, stream.random_access()) {
            return Ok(Box::new(zip::Members::new(archive, most)));
        }
        let input = BufReader::with_capacity(READ, stream.reader()?);
        Ok(match &self.spec.by {
            SplitBy::Lines => Box::new(lines(input, false, most)),
            SplitBy::Nul => Box::new(lines(input, true, most)),
            SplitBy::Separator(separator) => Box::new(separator::Separated::new(input, separator.clone(), most)),
            SplitBy::Matches(_) => {
                let separator = self.separator.clone().expect("it was made with the op");
                Box::new(matches::Between::new(input, separator, most))
            }
            SplitBy::Blocks(size) => Box::new(block::Blocks::new(input, b'\n', *size, most)),
            SplitBy::Json => Box::new(json::Values::new(input, most)),
            SplitBy::Table { separator, header } => Box::new(table::Rows::new(input, *separator, *header, most)),
            SplitBy::Tar => Box::new(tar::Members::new(input, most)),
            SplitBy::Zip => unreachable!("the payload was brought into memory"),
            SplitBy::Copies(stages) => {
                Box::new(stages.clone().into_iter().map(|stage| Ok(Cut { kind: Kind::Copy(stage), ..Cut::default() })))
            }
        })
    }

    /// The payload as a stream. The directory of a zip archive is at its end. So the archive is brought into memory if
    /// it can be read only from its start.
    fn stream(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<Stream, Failure> {
        let stream = record.payload.share();
        if self.spec.by != SplitBy::Zip || stream.random_access().is_some() {
            return Ok(stream);
        }
        let made = record.payload.to_make(cx)?;
        cx.reserve_first(record.bytes().saturating_add(made))?;
        let archive = record.payload.in_memory(made, cx)?.into_owned();
        record.payload = archive.into();
        Ok(record.payload.share())
    }
}

impl Op for Split {
    fn run(&self, _: &mut Record, _: &mut Cx<'_>) -> Result<(), Failure> {
        unreachable!("a stage that splits opens its units")
    }

    fn open(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<Pieces, Failure> {
        if record.level() >= MAX_LEVELS {
            return Err(Failure::permanent(format!("it is split at more than {MAX_LEVELS} levels, the limit")));
        }
        let whole = self.spec.copies().map(|_| record.payload.clone());
        let stream = self.stream(record, cx)?;
        record.rare.pieces = Some(Arc::default());
        let cuts = self.cuts(&stream).map_err(|error| stream.failure(&error))?;
        Ok(Pieces {
            cuts,
            stream,
            whole,
            parent: record.as_parent(),
            place: record.place.clone(),
            part: 0,
            runs_rest: record.rare.wanted.is_none() || record.rare.letter.is_some(),
            passed: record.rare.passed,
            so_far: record.rare.pieces.clone().unwrap_or_default(),
            wanted: record.rare.wanted.clone(),
            next_wanted: 0,
        })
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// A piece that was cut out of a payload.
#[derive(Debug, Default, PartialEq)]
pub struct Cut {
    kind: Kind,
    content: Vec<u8>,
    members: Members,
    fault: Option<String>,
}

/// The kind of a piece, which determines the text of the piece's unit.
#[derive(Debug, Default, PartialEq)]
enum Kind {
    /// The piece has no text.
    #[default]
    Nameless,
    /// The piece is a line, which is both the piece's text and its content.
    Line(Bytes),
    /// The path of a file in an archive.
    Member(Vec<u8>),
    /// The piece is a copy of the unit for the stage with this name.
    Copy(Arc<str>),
}

impl Cut {
    fn of(content: Vec<u8>) -> Self {
        Self { content, ..Self::default() }
    }

    fn wrong(fault: String) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// The reason why no more pieces can be cut.
#[derive(Debug)]
pub enum Torn {
    /// The payload cannot be read.
    Unread(io::Error),
    /// The payload is not in the expected format. The text states the reason.
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
    std::iter::from_fn(move || match lines.try_next_in_block() {
        Ok(Some((line, fault))) => Some(Ok(Cut { kind: Kind::Line(line), fault, ..Cut::default() })),
        Ok(None) => None,
        Err(error) => Some(Err(error.into())),
    })
}

/// The part of a piece that a retry runs: the whole piece, or only some of its own pieces.
#[derive(Default, PartialEq)]
struct Again {
    letter: Option<usize>,
    wanted: Option<Arc<Wanted>>,
    passed: u64,
}

/// The pieces of one unit.
pub struct Pieces {
    cuts: Cuts,
    /// The payload from which the pieces are cut.
    stream: Stream,
    /// The payload of each piece, if they are copies.
    whole: Option<Payload>,
    parent: Parent,
    place: Option<Arc<Place>>,
    /// The number of the last piece that was cut.
    part: u64,
    /// Whether all pieces with numbers greater than `passed` run, in addition to the wanted pieces.
    runs_rest: bool,
    /// The number of the last piece that an earlier run produced.
    passed: u64,
    /// The progress of the pieces. The unit's record refers to the same value.
    so_far: Arc<PiecesSoFar>,
    /// The pieces that a retry needs.
    wanted: Option<Arc<Wanted>>,
    /// The index of the first wanted piece that was not cut yet.
    next_wanted: usize,
}

impl Iterator for Pieces {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.runs_rest && self.wanted.as_ref().is_none_or(|all| self.next_wanted == all.len()) {
                return None;
            }
            let cut = match self.cuts.next() {
                Some(Ok(cut)) => cut,
                Some(Err(torn)) => return Some(Err(self.failure(torn))),
                None => return self.lacks().map(Err),
            };
            self.part += 1;
            // Relaxed: the number is read only after the unit has left this stage.
            self.so_far.last.store(self.part, Ordering::Relaxed);
            if self.part.is_multiple_of(PIECES_TOGETHER) {
                self.parent = self.parent.apart();
            }
            let Some(again) = self.wanted_of_this() else { continue };
            return Some(Ok(self.record(cut, again)));
        }
    }
}

impl Pieces {
    /// The part of the current piece that the retry runs; `None` if the retry does not need the piece.
    fn wanted_of_this(&mut self) -> Option<Again> {
        let all = self.wanted.as_deref().unwrap_or_default();
        let from = self.next_wanted;
        let of_this = all[from..].iter().take_while(|piece| piece.parts.first() == Some(&self.part)).count();
        self.next_wanted += of_this;
        let below = |some: &[WantedPiece]| {
            some.iter().map(|piece| WantedPiece { parts: piece.parts[1..].to_vec(), ..piece.clone() }).collect()
        };
        match &all[from..from + of_this] {
            [] => (self.runs_rest && self.part > self.passed).then(Again::default),
            // This letter stands for all pieces that the earlier run had not produced. Earlier pieces may have letters
            // of their own.
            [piece, some @ ..] if piece.parts.len() == 1 => Some(Again {
                letter: Some(piece.letter),
                passed: piece.passed,
                wanted: (!some.is_empty()).then(|| below(some)),
            }),
            some => Some(Again { wanted: Some(below(some)), ..Again::default() }),
        }
    }

    /// The failure if a retry needs a piece that no longer exists.
    fn lacks(&mut self) -> Option<Failure> {
        let all = self.wanted.take()?;
        let piece = all.get(self.next_wanted)?;
        let (part, parts) = (piece.parts.first().copied().unwrap_or_default(), self.part);
        Some(Failure::permanent(format!("part {part} is to be run again, and there are only {parts} now")))
    }

    fn record(&self, cut: Cut, again: Again) -> Record {
        let Cut { kind, content, members, fault } = cut;
        let (text, content) = match kind {
            Kind::Nameless => (PieceText::None, content.into()),
            Kind::Line(line) => (PieceText::Line(line.clone()), Payload::Slice(line)),
            Kind::Member(path) => (PieceText::Member(path), content.into()),
            Kind::Copy(stage) => (PieceText::Copy(stage), content.into()),
        };
        let mut record = Record::piece(&self.parent, self.part, text);
        (record.size, record.payload) = match &self.whole {
            Some(whole) => (self.parent.size, whole.clone()),
            None => (content.known_len(), content),
        };
        record.json = members;
        record.place = self.place.as_ref().map(|place| place.piece());
        if fault.is_some() {
            record.rare.fault = fault;
        }
        if again != Again::default() {
            let Again { letter, wanted, passed } = again;
            (record.rare.letter, record.rare.wanted, record.rare.passed) = (letter, wanted, passed);
        }
        record
    }

    fn failure(&self, torn: Torn) -> Failure {
        match torn {
            Torn::Unread(error) => self.stream.failure(&error),
            Torn::Senseless(message) => Failure::permanent(format!("after part {}: {message}", self.part)),
        }
    }
}
