//! The parser: definitions and expressions.

use std::ops::Range;

use super::lexer::{Token, tokens};
use super::problem::Problem;
use super::{MAX_DEPTH, MAX_TEXT};

/// An expression with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expr {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Name(String),
    Number(i64),
    /// A number with a decimal point, as in the text.
    Decimal(String),
    Text(String),
    Call(String, Vec<Expr>),
    Field(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    /// `-` and `not`.
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

/// A definition, with the span of its name.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) value: Expr,
}

/// A parsed program.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) definitions: Vec<Definition>,
    pub(super) result: Expr,
}

/// The binary operators, from the loosest to the tightest.
const LEVELS: [&[&str]; 5] = [&["or"], &["and"], &["==", "!=", "<", "<=", ">", ">="], &["+", "-"], &["*", "/", "%"]];

pub(super) fn parse(text: &str) -> Result<Written, Problem> {
    if text.len() > MAX_TEXT {
        let message = format!("a program of {} bytes; expected at most {MAX_TEXT}", text.len());
        return Err(Problem::new(message, 0..0, "begins here"));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let mut definitions: Vec<Definition> = Vec::new();
    loop {
        if let (Token::Name(name), Token::Sign("=")) = (parser.peek(0), parser.peek(1)) {
            let (name, span) = (name.clone(), parser.span());
            if let Some(first) = definitions.iter().find(|definition| definition.name == name) {
                let message = format!("`{name}` is defined twice; choose another name");
                return Err(Problem::new(message, span, "again").and(first.span.clone(), "the first time"));
            }
            parser.at += 2;
            let value = parser.expression(0)?;
            parser.expect(";", "`;` after a definition, and a stream at the end")?;
            definitions.push(Definition { name, span, value });
            continue;
        }
        let result = parser.expression(0)?;
        if parser.peek(0) == &Token::Sign(";") {
            parser.at += 1;
        }
        return match parser.peek(0) {
            Token::End => Ok(Written { definitions, result }),
            _ => Err(parser.expected("the end of the program; name a stream that is used later: `x = …;`")),
        };
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    fn expected(&self, what: &str) -> Problem {
        let found = match self.peek(0) {
            Token::Name(name) => format!("`{name}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Decimal(number) => format!("`{number}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        Problem::new(format!("expected {what}, found {found}"), self.span(), "here")
    }

    fn expect(&mut self, sign: &'static str, what: &str) -> Result<Range<usize>, Problem> {
        if self.peek(0) != &Token::Sign(sign) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(self.tokens[self.at - 1].1.clone())
    }

    /// Parses an expression of operators that bind at least as tightly as this level.
    fn expression(&mut self, level: usize) -> Result<Expr, Problem> {
        if level == 0 {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                let message = format!("an expression is nested deeper than {MAX_DEPTH} levels");
                return Err(Problem::new(message, self.span(), "too deep").help("name its parts: `x = …;`"));
            }
        }
        let result = self.operators(level);
        if level == 0 {
            self.depth -= 1;
        }
        result
    }

    fn operators(&mut self, level: usize) -> Result<Expr, Problem> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.operators(level + 1)?;
        let mut length = 0;
        while let Some(sign) = signs.iter().find(|sign| self.is(sign)) {
            length += 1;
            if length > MAX_DEPTH {
                return Err(Problem::new("a chain of too many operators", self.span(), "here"));
            }
            self.at += 1;
            let right = self.operators(level + 1)?;
            let span = left.span.start..right.span.end;
            left = Expr { kind: Kind::Binary(sign, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn is(&self, sign: &str) -> bool {
        match self.peek(0) {
            Token::Sign(found) => *found == sign,
            Token::Name(name) => name == sign,
            _ => false,
        }
    }

    fn unary(&mut self) -> Result<Expr, Problem> {
        let begin = self.span().start;
        let mut signs = Vec::new();
        while let Some(sign) = ["-", "not"].into_iter().find(|sign| self.is(sign)) {
            signs.push(sign);
            if signs.len() > MAX_DEPTH {
                return Err(Problem::new("a chain of too many operators", self.span(), "here"));
            }
            self.at += 1;
        }
        let mut value = match self.least() {
            // `i64::MIN` has no positive counterpart, so it is parsed together with its sign.
            Some(span) if signs.last() == Some(&"-") => {
                signs.pop();
                self.at += 1;
                Expr { kind: Kind::Number(i64::MIN), span: begin..span.end }
            }
            _ => self.postfix()?,
        };
        for sign in signs.into_iter().rev() {
            let span = begin..value.span.end;
            value = Expr { kind: Kind::Unary(sign, Box::new(value)), span };
        }
        Ok(value)
    }

    /// Returns the span of the next token if it is the magnitude of `i64::MIN`.
    fn least(&self) -> Option<Range<usize>> {
        let (token, span) = &self.tokens[self.at];
        (*token == Token::Number(i64::MIN.unsigned_abs())).then(|| span.clone())
    }

    fn postfix(&mut self) -> Result<Expr, Problem> {
        let mut value = self.primary()?;
        for _ in 0..MAX_DEPTH {
            let begin = value.span.start;
            if self.is(".") {
                self.at += 1;
                let (Token::Name(name), span) = self.tokens[self.at].clone() else {
                    return Err(self.expected("the name of a field after `.`"));
                };
                self.at += 1;
                value = Expr { kind: Kind::Field(Box::new(value), name), span: begin..span.end };
            } else if self.is("[") {
                self.at += 1;
                let index = self.expression(0)?;
                let end = self.expect("]", "`]` after an index")?.end;
                value = Expr { kind: Kind::Index(Box::new(value), Box::new(index)), span: begin..end };
            } else {
                return Ok(value);
            }
        }
        Err(Problem::new("a chain of too many fields", self.span(), "here"))
    }

    fn primary(&mut self) -> Result<Expr, Problem> {
        let (token, span) = self.tokens[self.at].clone();
        let kind = match token {
            Token::Number(number) => Kind::Number(
                number
                    .try_into()
                    .map_err(|_| Problem::new("a number does not fit into 64 bits", span.clone(), "too large"))?,
            ),
            Token::Decimal(number) => Kind::Decimal(number),
            Token::Text(text) => Kind::Text(text),
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.expression(0)?;
                self.expect(")", "`)`")?;
                return Ok(inner);
            }
            Token::Name(name) if self.peek(1) == &Token::Sign("(") => {
                self.at += 2;
                let mut arguments = Vec::new();
                while !self.is(")") {
                    arguments.push(self.expression(0)?);
                    if !self.is(")") {
                        self.expect(",", "`,` or `)` after an argument")?;
                    }
                }
                let end = self.expect(")", "`)`")?.end;
                return Ok(Expr { kind: Kind::Call(name, arguments), span: span.start..end });
            }
            Token::Name(name) => Kind::Name(name),
            Token::Sign(_) | Token::End => return Err(self.expected("a stream or a value")),
        };
        self.at += 1;
        Ok(Expr { kind, span })
    }
}
