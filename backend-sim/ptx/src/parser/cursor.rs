//! A place in the words of a text, and errors about it.

use crate::error::Error;
use crate::lexer::{Token, integer};

pub(super) struct Cursor<'t, 'a> {
    tokens: &'t [(Token<'a>, u32)],
    at: usize,
}

impl<'t, 'a> Cursor<'t, 'a> {
    pub(super) fn new(tokens: &'t [(Token<'a>, u32)]) -> Self {
        Self { tokens, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|&(token, _)| token)
    }

    pub(super) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at + 1).map(|&(token, _)| token)
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    /// The line of the next word; at the end, of the last one.
    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |&(_, line)| line)
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        let last = self.tokens.get(self.at.saturating_sub(1)).map_or(0, |&(_, line)| line);
        Error::new(last, message)
    }

    pub(super) fn truncated(&self) -> Error {
        Error::new(self.line(), "the text ends in the middle: it was cut off")
    }

    pub(super) fn unexpected(&self, expected: &str) -> Error {
        match self.peek() {
            None => self.truncated(),
            Some(Token::Word(word) | Token::Number(word)) => {
                Error::new(self.line(), format!("{expected}, found {word:?}"))
            }
            Some(Token::Text(text)) => Error::new(self.line(), format!("{expected}, found the text {text:?}")),
            Some(Token::Mark(mark)) => Error::new(self.line(), format!("{expected}, found {mark:?}")),
        }
    }

    pub(super) fn accept(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(Token::Word(word));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, mark: char) -> Result<(), Error> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("expected {mark:?}"))) }
    }

    pub(super) fn word(&mut self) -> Result<&'a str, Error> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected("expected a name or directive")),
        }
    }

    pub(super) fn number(&mut self) -> Result<&'a str, Error> {
        match self.peek() {
            Some(Token::Number(number)) => {
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.unexpected("expected a number")),
        }
    }

    /// A number of at most 32 bits: a count, a size, a line.
    pub(super) fn small(&mut self) -> Result<u32, Error> {
        let number = self.number()?;
        integer(number)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| self.error(format!("{number:?} is no number of 32 bits")))
    }

    /// An integer with its sign.
    pub(super) fn signed(&mut self) -> Result<i64, Error> {
        let negative = self.accept('-');
        let number = self.number()?;
        let value = integer(number).ok_or_else(|| self.error(format!("{number:?} is no integer of 64 bits")))?;
        let value = value.cast_signed();
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    pub(super) fn skip_statement(&mut self) -> Result<(), Error> {
        while !self.accept(';') {
            self.next().ok_or_else(|| self.truncated())?;
        }
        Ok(())
    }
}
