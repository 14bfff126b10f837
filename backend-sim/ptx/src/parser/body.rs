//! What stands inside a function: declarations, labels, instructions.

use super::cursor::Cursor;
use super::variable;
use crate::error::Error;
use crate::lexer::{Token, float, integer};
use crate::source::{Loc, Sources};
use crate::syntax::{Instruction, Operand, Statement, VariableSpace};
use crate::types::Type;

/// Scopes deeper than this are not from a compiler.
const DEEPEST: usize = 200;

/// Instructions on bytes or halves, whose operands may name some of them. Elsewhere a dot is part of a name.
const OF_PARTS: &[&str] = &[
    "vadd2",
    "vadd4",
    "vsub2",
    "vsub4",
    "vavrg2",
    "vavrg4",
    "vabsdiff2",
    "vabsdiff4",
    "vmin2",
    "vmin4",
    "vmax2",
    "vmax4",
    "vset2",
    "vset4",
];

/// From `{` to its `}`.
pub(super) fn body<'a>(cursor: &mut Cursor<'_, 'a>, sources: &mut Sources<'a>) -> Result<Vec<Statement<'a>>, Error> {
    cursor.expect('{')?;
    let (mut all, mut depth) = (Vec::new(), 1);
    while depth > 0 {
        let line = cursor.line();
        match cursor.peek() {
            None => return Err(cursor.truncated()),
            Some(Token::Mark('{')) => {
                cursor.next();
                depth += 1;
                if depth > DEEPEST {
                    return Err(cursor.error("scopes are nested too deeply"));
                }
                all.push(Statement::Begin);
            }
            Some(Token::Mark('}')) => {
                cursor.next();
                depth -= 1;
                if depth > 0 {
                    all.push(Statement::End);
                }
            }
            Some(Token::Mark(';')) => {
                cursor.next();
            }
            Some(Token::Word(word)) if word.starts_with('.') => {
                cursor.next();
                directive(cursor, sources, word, line, &mut all)?;
            }
            Some(Token::Word(word)) if cursor.peek_second() == Some(Token::Mark(':')) => {
                cursor.next();
                cursor.next();
                if cursor.accept_word(".branchtargets") {
                    all.push(Statement::Targets { name: word, labels: targets(cursor)?, line });
                } else {
                    all.push(Statement::Label(word, line));
                }
            }
            Some(_) => all.push(Statement::Instruction(instruction(cursor)?)),
        }
    }
    Ok(all)
}

fn targets<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<Vec<&'a str>, Error> {
    let mut labels = vec![cursor.word()?];
    while cursor.accept(',') {
        labels.push(cursor.word()?);
    }
    cursor.expect(';')?;
    Ok(labels)
}

fn directive<'a>(
    cursor: &mut Cursor<'_, 'a>,
    sources: &mut Sources<'a>,
    word: &'a str,
    line: u32,
    into: &mut Vec<Statement<'a>>,
) -> Result<(), Error> {
    let space = match word {
        ".loc" => {
            into.push(Statement::Loc(sources.locs.len()));
            sources.locs.push(loc(cursor)?);
            return Ok(());
        }
        ".reg" => return registers(cursor, line, into),
        ".pragma" => return pragma(cursor, line, into),
        ".local" => VariableSpace::Local,
        ".shared" => VariableSpace::Shared,
        ".param" => VariableSpace::Param,
        _ => return Err(Error::new(line, format!("the directive {word:?} is not known here"))),
    };
    loop {
        into.extend(variable::declaration(cursor, space, false)?.into_iter().map(Statement::Variable));
        if !cursor.accept(',') {
            return cursor.expect(';');
        }
    }
}

/// `.pragma "text", …;`. All but marks are for other programs.
fn pragma<'a>(cursor: &mut Cursor<'_, 'a>, line: u32, into: &mut Vec<Statement<'a>>) -> Result<(), Error> {
    while let Some(token) = cursor.next() {
        match token {
            Token::Mark(';') => return Ok(()),
            Token::Text(text) => {
                let Some(ours) = text.strip_prefix("onesided.") else { continue };
                let reason = match ours.strip_prefix("intended_race:").map(str::trim) {
                    Some("") => return Err(Error::new(line, "an intended race needs a reason")),
                    Some(reason) => Some(reason),
                    None if ours == "intended_race.end" => None,
                    None => return Err(Error::new(line, format!("the pragma {text:?} is not known here"))),
                };
                into.push(Statement::Mark { reason, line });
            }
            _ => {}
        }
    }
    Err(cursor.truncated())
}

/// `.loc file line column`, perhaps with `, function_name label+offset, inlined_at file line column`.
fn loc<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<Loc<'a>, Error> {
    let (file, line, column) = (cursor.small()?, cursor.small()?, cursor.small()?);
    let mut loc = Loc { file, line, column, function: None, inlined_at: None };
    while cursor.accept(',') {
        match cursor.word()? {
            "function_name" => {
                loc.function = Some(cursor.word()?);
                if cursor.accept('+') {
                    cursor.number()?;
                }
            }
            "inlined_at" => loc.inlined_at = Some((cursor.small()?, cursor.small()?, cursor.small()?)),
            other => return Err(cursor.error(format!("{other:?} of a .loc is not known here"))),
        }
    }
    Ok(loc)
}

fn registers<'a>(cursor: &mut Cursor<'_, 'a>, line: u32, into: &mut Vec<Statement<'a>>) -> Result<(), Error> {
    let word = cursor.word()?;
    let ty = word.strip_prefix('.').and_then(Type::parse);
    let ty = ty.ok_or_else(|| Error::new(line, format!("registers of type {word:?} are not known here")))?;
    loop {
        let name = cursor.word()?;
        let count = if cursor.accept('<') { Some(cursor.small()?) } else { None };
        if count.is_some() {
            cursor.expect('>')?;
        }
        into.push(Statement::Registers { ty, name, count, line });
        if !cursor.accept(',') {
            return cursor.expect(';');
        }
    }
}

fn instruction<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<Instruction<'a>, Error> {
    let line = cursor.line();
    let guard = if cursor.accept('@') {
        let negated = cursor.accept('!');
        Some((cursor.word()?, negated))
    } else {
        None
    };
    let mut words = cursor.word()?.split('.');
    let opcode = words.next().unwrap_or_default();
    let modifiers = words.collect();
    let mut operands = Vec::new();
    while !cursor.accept(';') {
        operands.push(match operand(cursor, 0)? {
            Operand::Name { name, offset: 0 } if OF_PARTS.contains(&opcode) => part(name),
            other => other,
        });
        if !cursor.accept(',') {
            cursor.expect(';')?;
            break;
        }
    }
    Ok(Instruction { line, guard, opcode, modifiers, operands })
}

/// `%r1.b3210`, or a register as a whole.
fn part(name: &str) -> Operand<'_> {
    match name.rsplit_once('.') {
        Some((name, part)) => Operand::Part { name, part },
        None => Operand::Name { name, offset: 0 },
    }
}

fn operand<'a>(cursor: &mut Cursor<'_, 'a>, depth: usize) -> Result<Operand<'a>, Error> {
    if depth > 4 {
        return Err(cursor.error("operands are nested too deeply"));
    }
    match cursor.next() {
        None => Err(cursor.truncated()),
        Some(Token::Mark('[')) => address(cursor, depth),
        Some(Token::Mark('{')) => match list(cursor, '}', depth)? {
            none if none.is_empty() => Err(cursor.error("a vector without elements")),
            all => Ok(Operand::Vector(all)),
        },
        Some(Token::Mark('(')) => Ok(Operand::List(list(cursor, ')', depth)?)),
        Some(Token::Mark('!')) => Ok(Operand::Not(cursor.word()?)),
        Some(Token::Mark('-')) => {
            let number = cursor.number()?;
            match (integer(number), float(number)) {
                (Some(value), _) => Ok(Operand::Bits(value.wrapping_neg())),
                (None, Some(crate::lexer::Float::Double(value))) => {
                    Ok(Operand::Float(crate::lexer::Float::Double(-value)))
                }
                _ => Err(cursor.error(format!("-{number} is no number"))),
            }
        }
        Some(Token::Number(number)) => match (integer(number), float(number)) {
            (_, Some(value)) => Ok(Operand::Float(value)),
            (Some(value), None) => Ok(Operand::Bits(value)),
            _ => Err(cursor.error(format!("{number:?} is no number"))),
        },
        Some(Token::Word(name)) => {
            if cursor.accept('|') {
                Ok(Operand::Pair(name, cursor.word()?))
            } else if cursor.accept('+') {
                Ok(Operand::Name { name, offset: cursor.signed()? })
            } else {
                Ok(Operand::Name { name, offset: 0 })
            }
        }
        Some(_) => Err(cursor.error("expected an operand")),
    }
}

fn list<'a>(cursor: &mut Cursor<'_, 'a>, end: char, depth: usize) -> Result<Vec<Operand<'a>>, Error> {
    let mut all = Vec::new();
    while !cursor.accept(end) {
        all.push(operand(cursor, depth + 1)?);
        if !cursor.accept(',') {
            cursor.expect(end)?;
            break;
        }
    }
    Ok(all)
}

fn address<'a>(cursor: &mut Cursor<'_, 'a>, depth: usize) -> Result<Operand<'a>, Error> {
    let base = match cursor.peek() {
        Some(Token::Word(name)) => {
            cursor.next();
            Some(name)
        }
        _ => None,
    };
    let offset = match (base, cursor.accept('+')) {
        (None, _) | (_, true) => cursor.signed()?,
        (Some(_), false) if cursor.peek() == Some(Token::Mark('-')) => cursor.signed()?,
        _ => 0,
    };
    if cursor.accept(',') {
        cursor.expect('{')?;
        let corner = list(cursor, '}', depth)?;
        cursor.expect(']')?;
        return Ok(Operand::Tile { base, offset, corner });
    }
    cursor.expect(']')?;
    Ok(Operand::Address { base, offset })
}
