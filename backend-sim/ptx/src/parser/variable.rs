//! Declarations of variables and parameters, with their initializers.

use super::cursor::Cursor;
use crate::error::Error;
use crate::lexer::{Token, float, integer};
use crate::syntax::{Initial, Variable, VariableSpace};
use crate::types::Type;

/// What follows the state space: `.align 8 .b8 name[16] = {1, 2}, other`. The mark behind it is left.
pub(super) fn declaration<'a>(
    cursor: &mut Cursor<'_, 'a>,
    space: VariableSpace,
    is_external: bool,
) -> Result<Vec<Variable<'a>>, Error> {
    let (mut align, mut elements) = (None, 1);
    let ty = loop {
        let word = cursor.word()?;
        match word {
            ".align" => align = Some(alignment(cursor)?),
            ".v2" => elements = 2,
            ".v4" => elements = 4,
            // Hints about what a pointer points to.
            ".ptr" => {
                while cursor.accept_word(".global")
                    || cursor.accept_word(".shared")
                    || cursor.accept_word(".local")
                    || cursor.accept_word(".const")
                {}
            }
            _ => match word.strip_prefix('.').and_then(Type::parse) {
                Some(ty) => break ty,
                None => {
                    return Err(
                        cursor.error(format!("{word:?} is no type or attribute of a variable that is known here"))
                    );
                }
            },
        }
    };
    // The alignment of what a pointer points to stands behind the type.
    while matches!(cursor.peek(), Some(Token::Word(".ptr" | ".align" | ".global" | ".shared" | ".local" | ".const"))) {
        if cursor.word()? == ".align" {
            alignment(cursor)?;
        }
    }
    let mut all = Vec::new();
    loop {
        let line = cursor.line();
        let name = cursor.word()?;
        let mut size = Some(u64::from(ty.bytes()) * elements);
        while cursor.accept('[') {
            if cursor.accept(']') {
                size = None;
                continue;
            }
            let length = cursor.small()?;
            cursor.expect(']')?;
            let bytes = size.and_then(|size| size.checked_mul(length.into())).filter(|&bytes| bytes <= 1 << 30);
            if size.is_some() && bytes.is_none() {
                return Err(cursor.error(format!("{name} is larger than 1 GiB")));
            }
            size = bytes;
        }
        let mut initial = Vec::new();
        if cursor.accept('=') {
            initializer(cursor, &mut initial)?;
            let room = size.map_or(u64::MAX, |size| size / u64::from(ty.bytes().max(1)));
            if initial.len() as u64 > room {
                return Err(
                    cursor.error(format!("the initializer of {name} has {} elements, of {room}", initial.len()))
                );
            }
            size = size.or(Some(initial.len() as u64 * u64::from(ty.bytes())));
        }
        let natural = ty.bytes() * elements as u32;
        all.push(Variable { name, line, space, ty, align: align.unwrap_or(natural), size, is_external, initial });
        // In a list of parameters, the comma is the list's.
        if space == VariableSpace::Param || !cursor.accept(',') {
            return Ok(all);
        }
    }
}

fn alignment(cursor: &mut Cursor<'_, '_>) -> Result<u32, Error> {
    let align = cursor.small()?;
    if !align.is_power_of_two() || align > 1 << 16 {
        return Err(cursor.error(format!("an alignment is a power of two up to 65536, not {align}")));
    }
    Ok(align)
}

fn initializer<'a>(cursor: &mut Cursor<'_, 'a>, into: &mut Vec<Initial<'a>>) -> Result<(), Error> {
    if !cursor.accept('{') {
        into.push(element(cursor)?);
        return Ok(());
    }
    // Braces within braces are rows of an array: their elements follow each other.
    let mut depth = 1;
    while depth > 0 {
        if cursor.accept('{') {
            depth += 1;
        } else if cursor.accept('}') {
            depth -= 1;
        } else if !cursor.accept(',') {
            into.push(element(cursor)?);
        }
    }
    Ok(())
}

fn element<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<Initial<'a>, Error> {
    let negative = cursor.accept('-');
    match cursor.next() {
        Some(Token::Number(number)) => {
            if let Some(value) = integer(number) {
                Ok(Initial::Bits(if negative { value.wrapping_neg() } else { value }))
            } else if let Some(value) = float(number).filter(|_| !negative) {
                Ok(Initial::Float(value))
            } else {
                Err(cursor.error(format!("{number:?} is no number")))
            }
        }
        Some(Token::Word(word)) if !negative => {
            let generic = word == "generic" && cursor.accept('(');
            let name = if generic { cursor.word()? } else { word };
            if generic {
                cursor.expect(')')?;
            }
            let offset = if cursor.accept('+') { cursor.signed()? } else { 0 };
            Ok(Initial::Address { name, offset, generic })
        }
        None => Err(cursor.truncated()),
        Some(_) => Err(cursor.error("expected an element of an initializer: a number or an address")),
    }
}
