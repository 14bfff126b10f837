//! From words to syntax: the declarations of a module. [`body`] has what stands inside functions.

mod body;
mod cursor;
mod variable;

use cursor::Cursor;

use crate::error::Error;
use crate::lexer::{Token, tokens};
use crate::syntax::{Function, Text, VariableSpace};

/// The newest version of PTX whose instructions were looked at.
pub(crate) const NEWEST_VERSION: (u32, u32) = (9, 5);

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Text<'_>, Error> {
    let tokens = tokens(text)?;
    let mut parser = Parser { cursor: Cursor::new(&tokens), text: Text::default() };
    parser.header()?;
    while parser.cursor.peek().is_some() {
        parser.item()?;
    }
    Ok(parser.text)
}

struct Parser<'t, 'a> {
    cursor: Cursor<'t, 'a>,
    text: Text<'a>,
}

impl<'a> Parser<'_, 'a> {
    fn header(&mut self) -> Result<(), Error> {
        if self.cursor.peek().is_none() {
            return Err(Error::new(0, "the text is empty"));
        }
        if !self.cursor.accept_word(".version") {
            return Err(self.cursor.unexpected("a PTX text begins with .version"));
        }
        let version = self.cursor.number()?;
        let (major, minor) = version.split_once('.').unwrap_or((version, ""));
        let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) else {
            return Err(self.cursor.error(format!("{version:?} is no version")));
        };
        self.text.version = (major, minor);
        if self.text.version > NEWEST_VERSION {
            let (newest, point) = NEWEST_VERSION;
            return Err(self.cursor.error(format!(
                "this is PTX {version}; the newest version that is known here is {newest}.{point}. Compile with an older NVRTC"
            )));
        }
        Ok(())
    }

    fn item(&mut self) -> Result<(), Error> {
        let line = self.cursor.line();
        let (mut external, mut word) = (false, self.cursor.word()?);
        while matches!(word, ".visible" | ".extern" | ".weak" | ".common") {
            external |= word == ".extern";
            word = self.cursor.word()?;
        }
        match word {
            ".target" => {
                while {
                    self.cursor.word()?;
                    self.cursor.accept(',')
                } {}
            }
            ".address_size" => {
                if self.cursor.number()? != "64" {
                    return Err(self.cursor.error("only 64-bit addresses are known (.address_size 64)"));
                }
            }
            ".file" => self.file()?,
            ".section" => self.section()?,
            ".pragma" => self.cursor.skip_statement()?,
            ".entry" => self.function(line, true, external)?,
            ".func" => self.function(line, false, external)?,
            ".global" => self.variables(VariableSpace::Global, external)?,
            ".const" => self.variables(VariableSpace::Const, external)?,
            ".shared" => self.variables(VariableSpace::Shared, external)?,
            _ => return Err(Error::new(line, format!("the directive {word:?} is not known here"))),
        }
        Ok(())
    }

    fn variables(&mut self, space: VariableSpace, external: bool) -> Result<(), Error> {
        let variables = variable::declaration(&mut self.cursor, space, external)?;
        self.cursor.expect(';')?;
        self.text.variables.extend(variables);
        Ok(())
    }

    /// `.file 1 "name"`, perhaps with time and size.
    fn file(&mut self) -> Result<(), Error> {
        let number = self.cursor.small()?;
        let Some(Token::Text(name)) = self.cursor.next() else {
            return Err(self.cursor.error("expected the name of a file in quotes"));
        };
        while self.cursor.accept(',') {
            self.cursor.number()?;
        }
        self.text.sources.files.insert(number, unescaped(name).into());
        Ok(())
    }

    /// A section of debug information. Only the strings are of interest: the names of functions that were inlined.
    fn section(&mut self) -> Result<(), Error> {
        let name = self.cursor.word()?;
        self.cursor.expect('{')?;
        let (mut label, mut bytes) = (None, Vec::new());
        loop {
            match self.cursor.next() {
                Some(Token::Mark('}')) => break,
                Some(Token::Word(word)) if self.cursor.accept(':') => {
                    self.name(name, label.replace(word), &mut bytes);
                }
                Some(Token::Number(number)) => {
                    bytes.push(number.parse::<u8>().unwrap_or(b'?'));
                }
                Some(_) => {}
                None => return Err(self.cursor.truncated()),
            }
        }
        self.name(name, label, &mut bytes);
        Ok(())
    }

    fn name(&mut self, section: &str, label: Option<&'a str>, bytes: &mut Vec<u8>) {
        if let (".debug_str", Some(label)) = (section, label) {
            let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
            self.text.sources.names.insert(label, String::from_utf8_lossy(text).into());
        }
        bytes.clear();
    }

    /// `.entry name(parameters) directives { body }`, or `.func (result) name(parameters);`.
    fn function(&mut self, line: u32, is_entry: bool, is_external: bool) -> Result<(), Error> {
        let result = if self.cursor.peek() == Some(Token::Mark('(')) {
            let mut results = self.parameters()?;
            if results.len() > 1 {
                return Err(Error::new(line, "a function with more than one result is not known here"));
            }
            results.pop()
        } else {
            None
        };
        let name = self.cursor.word()?;
        let parameters = if self.cursor.peek() == Some(Token::Mark('(')) { self.parameters()? } else { Vec::new() };
        let (mut max_threads, mut required_threads, mut cluster) = (None, None, None);
        let body = loop {
            match self.cursor.peek() {
                Some(Token::Mark(';')) => {
                    self.cursor.next();
                    break None;
                }
                Some(Token::Mark('{')) => break Some(body::body(&mut self.cursor, &mut self.text.sources)?),
                _ => match self.cursor.word()? {
                    ".maxntid" => max_threads = Some(self.dimensions()?),
                    ".reqntid" => required_threads = Some(self.dimensions()?),
                    ".reqnctapercluster" => cluster = Some(self.dimensions()?),
                    ".noreturn" | ".explicitcluster" => {}
                    ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".maxclusterrank" => {
                        self.cursor.number()?;
                    }
                    ".pragma" => self.cursor.skip_statement()?,
                    other => {
                        return Err(self.cursor.error(format!("the directive {other:?} of {name} is not known here")));
                    }
                },
            }
        };
        self.text.functions.push(Function {
            name,
            line,
            is_entry,
            is_external,
            result,
            parameters,
            max_threads,
            required_threads,
            cluster,
            body,
        });
        Ok(())
    }

    fn dimensions(&mut self) -> Result<[u32; 3], Error> {
        let mut dimensions = [1; 3];
        for dimension in &mut dimensions {
            *dimension = self.cursor.small()?;
            if !self.cursor.accept(',') {
                break;
            }
        }
        Ok(dimensions)
    }

    fn parameters(&mut self) -> Result<Vec<crate::syntax::Variable<'a>>, Error> {
        self.cursor.expect('(')?;
        let mut all = Vec::new();
        while !self.cursor.accept(')') {
            match self.cursor.word()? {
                ".param" => all.extend(variable::declaration(&mut self.cursor, VariableSpace::Param, false)?),
                other => {
                    return Err(self.cursor.error(format!(
                        "expected .param, found {other:?}: parameters in registers are not known here"
                    )));
                }
            }
            if !self.cursor.accept(',') {
                self.cursor.expect(')')?;
                break;
            }
        }
        Ok(all)
    }
}

/// A name as its file has it: compilers write other bytes than those of ASCII as octal numbers (`f\303\274r.cu`).
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, behind @ ..] = rest {
        let octal = behind.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let value = octal.map(|digits| digits.iter().fold(0, |value, digit| value * 8 + u32::from(digit - b'0')));
        let (byte, length) = match (first, value.and_then(|value| u8::try_from(value).ok()), behind) {
            (b'\\', Some(byte), _) => (byte, 4),
            (b'\\', None, [escaped @ (b'\\' | b'"'), ..]) => (*escaped, 2),
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn names_of_files_are_as_their_files_have_them() {
        for (written, name) in [
            ("k.cu", "k.cu"),
            (r"f\303\274r.cu", "f\u{fc}r.cu"),
            (r"a\\303.cu", r"a\303.cu"),
            (r"a\777\9\", r"a\777\9\"),
        ] {
            assert_eq!(unescaped(written), name);
        }
    }
}
