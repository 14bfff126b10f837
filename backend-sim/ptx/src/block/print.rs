//! `printf`, as CUDA has it: the conversions of C, with arguments that lie one behind the other at their natural alignment.

/// What a conversion asks for.
pub(super) enum Request {
    /// A number of 4 or 8 bytes.
    Word(u8),
    /// A pointer to text.
    Text,
}

pub(super) enum Answer {
    Word(u64),
    Text(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) text: String,
    /// How many arguments there were: what `printf` returns on a GPU.
    pub(super) arguments: u8,
}

/// Formats. A conversion that C does not know is printed as it stands.
pub(super) fn format<E>(format: &str, mut next: impl FnMut(Request) -> Result<Answer, E>) -> Result<Printed, E> {
    let mut printed = Printed { text: String::new(), arguments: 0 };
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        printed.text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((mut conversion, length)) = Conversion::parse(rest) else {
            printed.text.push('%');
            continue;
        };
        rest = &rest[length..];
        if conversion.kind == '%' {
            printed.text.push('%');
            continue;
        }
        let mut given = |size: Option<Size>| match size {
            Some(Size::Argument) => Ok(match next(Request::Word(4))? {
                Answer::Word(value) => Some(value as u32 as i32),
                Answer::Text(_) => None,
            }),
            _ => Ok(None),
        };
        if let Some(width) = given(conversion.width)? {
            conversion.left |= width < 0;
            conversion.width = Some(Size::Given(width.unsigned_abs().min(1000) as usize));
        }
        if let Some(precision) = given(conversion.precision)? {
            let precision = usize::try_from(precision).ok(); // a negative one is none
            conversion.precision = precision.map(|precision| Size::Given(precision.min(1000)));
        }
        let request = match conversion.kind {
            's' => Request::Text,
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' | 'p' => Request::Word(8),
            _ if conversion.bits == 64 => Request::Word(8),
            _ => Request::Word(4),
        };
        printed.arguments = printed.arguments.saturating_add(1);
        match next(request)? {
            Answer::Word(value) => printed.text.push_str(&conversion.number(value)),
            Answer::Text(text) => printed.text.push_str(&conversion.text(&text)),
        }
    }
    printed.text.push_str(rest);
    Ok(printed)
}

#[derive(Clone, Copy)]
enum Size {
    Given(usize),
    Argument,
}

/// `%-08.3ld`, taken apart.
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: Option<Size>,
    precision: Option<Size>,
    /// Of a number: what stands for a shorter one is passed as an `int`.
    bits: u32,
    kind: char,
}

impl Conversion {
    /// What stands behind a `%`, and its length.
    fn parse(text: &str) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let mut at = 0;
        let flags = bytes.iter().take_while(|byte| b"-0+ #".contains(byte)).count();
        let has = |flag: u8| bytes[..flags].contains(&flag);
        at += flags;
        let size = |at: &mut usize| {
            if bytes.get(*at) == Some(&b'*') {
                *at += 1;
                return Some(Size::Argument);
            }
            let digits = bytes[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = text[*at..*at + digits].parse().unwrap_or(0_usize);
            *at += digits;
            (digits > 0).then_some(Size::Given(value.min(1000)))
        };
        let width = size(&mut at);
        let precision = if bytes.get(at) == Some(&b'.') {
            at += 1;
            Some(size(&mut at).unwrap_or(Size::Given(0)))
        } else {
            None
        };
        let modifiers = bytes[at..].iter().take_while(|byte| b"hlLqjzt".contains(byte)).count();
        let modifier = &bytes[at..at + modifiers];
        let bits = match modifier {
            [] => 32,
            [b'h'] => 16,
            [b'h', ..] => 8,
            _ => 64,
        };
        at += modifiers;
        let kind = char::from(*bytes.get(at)?);
        if !"diouxXcsfFeEgGaAp%".contains(kind) {
            return None;
        }
        let (left, zero, plus) = (has(b'-'), has(b'0'), has(b'+'));
        let conversion =
            Self { left, zero, plus, space: has(b' '), alternate: has(b'#'), width, precision, bits, kind };
        Some((conversion, at + 1))
    }

    fn precision(&self) -> Option<usize> {
        self.precision.and_then(|size| if let Size::Given(value) = size { Some(value) } else { None })
    }

    fn text(&self, text: &str) -> String {
        let text: String = text.chars().take(self.precision().unwrap_or(usize::MAX)).collect();
        self.padded("", &text, false)
    }

    fn number(&self, value: u64) -> String {
        let unused = 64 - self.bits;
        let value = if "diouxX".contains(self.kind) { value << unused >> unused } else { value };
        match self.kind {
            'd' | 'i' => {
                let value = (value << unused).cast_signed() >> unused;
                self.integer(value < 0, &value.unsigned_abs().to_string())
            }
            'u' => self.integer(false, &value.to_string()),
            'o' => self.integer(false, &format!("{value:o}")),
            'x' | 'X' => {
                let digits = if self.kind == 'x' { format!("{value:x}") } else { format!("{value:X}") };
                let prefix = if self.alternate && value != 0 { if self.kind == 'x' { "0x" } else { "0X" } } else { "" };
                let digits = self.least_digits(&digits);
                self.padded(prefix, &digits, self.precision.is_none())
            }
            'c' => self.padded("", &char::from(value as u8).to_string(), false),
            'p' => self.padded("", &format!("{value:#x}"), false),
            _ => self.float(f64::from_bits(value)),
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn least_digits(&self, digits: &str) -> String {
        let least = self.precision().unwrap_or(0);
        format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())))
    }

    fn integer(&self, negative: bool, digits: &str) -> String {
        self.padded(self.sign(negative), &self.least_digits(digits), self.precision.is_none())
    }

    fn float(&self, value: f64) -> String {
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        let upper = self.kind.is_ascii_uppercase();
        let magnitude = value.abs();
        let digits = if value.is_nan() {
            "nan".to_owned()
        } else if value.is_infinite() {
            "inf".to_owned()
        } else {
            let precision = self.precision().unwrap_or(6);
            match self.kind.to_ascii_lowercase() {
                'f' => format!("{magnitude:.precision$}"),
                'e' => exponential(magnitude, precision),
                'g' => self.general(magnitude, precision.max(1)),
                _ => format!("{:#x}", magnitude.to_bits()), // %a: the bits say as much
            }
        };
        let digits = if upper { digits.to_uppercase() } else { digits };
        self.padded(sign, &digits, value.is_finite())
    }

    /// The shorter of both forms, without zeros at the end.
    fn general(&self, magnitude: f64, precision: usize) -> String {
        let scientific = exponential(magnitude, precision - 1);
        let exponent: i32 = scientific.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
        let trim = |digits: &str| {
            if self.alternate || !digits.contains('.') {
                digits.to_owned()
            } else {
                digits.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        };
        if exponent < -4 || exponent >= precision as i32 {
            let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
            format!("{}e{power}", trim(digits))
        } else {
            let decimals = (precision as i32 - 1 - exponent) as usize;
            trim(&format!("{magnitude:.decimals$}"))
        }
    }

    fn padded(&self, prefix: &str, digits: &str, zeros: bool) -> String {
        let width = if let Some(Size::Given(width)) = self.width { width } else { 0 };
        let missing = width.saturating_sub(prefix.len() + digits.chars().count());
        if self.left {
            format!("{prefix}{digits}{}", " ".repeat(missing))
        } else if self.zero && zeros {
            format!("{prefix}{}{digits}", "0".repeat(missing))
        } else {
            format!("{}{prefix}{digits}", " ".repeat(missing))
        }
    }
}

/// With a sign and at least two digits in the exponent.
fn exponential(magnitude: f64, precision: usize) -> String {
    let text = format!("{magnitude:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, arguments: &[u64]) -> String {
        let mut left = arguments.iter();
        let next = |_| Ok::<_, ()>(Answer::Word(*left.next().expect("there are enough")));
        format(text, next).unwrap().text
    }

    /// A negative width is a positive one to the left, and a negative precision is none.
    #[test]
    fn widths_and_precisions_of_arguments() {
        let minus_five = u64::from(5_u32.wrapping_neg());
        assert_eq!(printed("<%*d>", &[5, 42]), "<   42>");
        assert_eq!(printed("<%*d>", &[minus_five, 42]), "<42   >");
        assert_eq!(printed("<%*.*d>", &[5, 3, 42]), "<  042>");
        assert_eq!(printed("<%.*d>", &[minus_five, 42]), "<42>");
        assert_eq!(printed("<%5d>", &[42]), "<   42>");
    }

    /// What is passed as an `int` is printed as the shorter type that is named.
    #[test]
    fn sizes_of_numbers() {
        let minus_one = u64::from(u32::MAX);
        assert_eq!(printed("%hhd %hd %d", &[0x1ff, 0x1_8000, minus_one]), "-1 -32768 -1");
        assert_eq!(printed("%hhu %hx %u", &[0x1ff, 0x1_8000, minus_one]), "255 8000 4294967295");
        assert_eq!(printed("%lld %llx", &[u64::MAX, u64::MAX]), "-1 ffffffffffffffff");
    }
}
