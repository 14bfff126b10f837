//! [`At`]: a place in a program's source, in whatever language the program is written.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Mutex;

/// Where a call stands in the program's source: file, line, column and, where it is known, the function.
///
/// Every verb notes its caller's place, and errors, verdicts and traces name it. A Rust program's places come from the
/// compiler ([`At::caller`]) and cost nothing. A binding for another language makes them with [`At::foreign`].
///
/// ```
/// use onesided::At;
/// let here = At::caller();
/// assert!(here.file().ends_with(".rs") && here.line() > 0);
///
/// let there = At::foreign("ring.py", 12, 5, Some("main"));
/// assert_eq!((there.to_string().as_str(), there.function()), ("ring.py:12", Some("main")));
/// assert_eq!(there, At::foreign("ring.py", 12, 5, Some("main")));
/// ```
#[derive(Clone, Copy)]
pub struct At(Place);

/// What an [`At`] refers to, for code that stores it in parts. Two words: passing a place on allocates nothing and follows
/// no pointer.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the two words that a stack switch passes on")]
pub enum Place {
    Rust(&'static Location<'static>),
    Foreign(&'static Foreign),
}

/// A place that the Rust compiler did not make.
#[doc(hidden)]
#[derive(Debug)]
pub struct Foreign {
    file: &'static str,
    line: u32,
    column: u32,
    function: Option<&'static str>,
    inlined_at: Option<At>,
}

type Key = (String, u32, u32, Option<String>, Option<At>);

/// Every foreign place that was ever made. A program has few lines, and a place must live as long as the process.
static FOREIGN: Mutex<BTreeMap<Key, At>> = Mutex::new(BTreeMap::new());

impl At {
    /// The place of the caller: of the function that calls this, or of *its* caller if it is `#[track_caller]`.
    #[inline]
    #[track_caller]
    pub fn caller() -> At {
        At(Place::Rust(Location::caller()))
    }

    /// A place in a program that is not written in Rust. `line` and `column` count from 1; 0 means that they are not
    /// known.
    ///
    /// Each distinct place is kept until the process ends. Making it takes a lock and a look-up: a binding keeps the
    /// places of its call sites where it can.
    pub fn foreign(file: &str, line: u32, column: u32, function: Option<&str>) -> At {
        At::made((file.to_string(), line, column, function.map(str::to_string), None))
    }

    /// The same place, in a function that the compiler has inlined at a call in `caller`. Reports name both lines.
    ///
    /// ```
    /// use onesided::At;
    /// let copy = At::foreign("copy.cuh", 7, 1, Some("copy"));
    /// let in_ring = copy.inlined(At::foreign("ring.cu", 40, 5, None));
    /// assert_eq!(in_ring.to_string(), "copy.cuh:7");
    /// assert_eq!(format!("{in_ring:#}"), "copy.cuh:7, inlined at ring.cu:40");
    /// assert_eq!(in_ring.inlined_at().map(|at| at.line()), Some(40));
    /// ```
    #[must_use]
    pub fn inlined(self, caller: At) -> At {
        let (file, line, column, function, _) = self.parts();
        At::made((file.to_string(), line, column, function.map(str::to_string), Some(caller)))
    }

    fn made(key: Key) -> At {
        let mut places = FOREIGN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = places.get(&key) {
            return *known;
        }
        let keep = |text: &str| -> &'static str { Box::leak(Box::from(text)) };
        let (file, line, column, function, inlined_at) = &key;
        let (line, column, inlined_at) = (*line, *column, *inlined_at);
        let place = Foreign { file: keep(file), line, column, function: function.as_deref().map(keep), inlined_at };
        let at = At(Place::Foreign(Box::leak(Box::new(place))));
        places.insert(key, at);
        at
    }

    /// The source file, as the compiler or the foreign language names it.
    pub fn file(&self) -> &'static str {
        match self.0 {
            Place::Rust(location) => location.file(),
            Place::Foreign(place) => place.file,
        }
    }

    /// The line, from 1; 0 if it is not known.
    pub fn line(&self) -> u32 {
        match self.0 {
            Place::Rust(location) => location.line(),
            Place::Foreign(place) => place.line,
        }
    }

    /// The column, from 1; 0 if it is not known.
    pub fn column(&self) -> u32 {
        match self.0 {
            Place::Rust(location) => location.column(),
            Place::Foreign(place) => place.column,
        }
    }

    /// The function that contains the call. `None` if it is not known: Rust's compiler does not tell it.
    pub fn function(&self) -> Option<&'static str> {
        match self.0 {
            Place::Rust(_) => None,
            Place::Foreign(place) => place.function,
        }
    }

    /// The call into which the compiler inlined the function of this place. `None` if it was not inlined, or if that is not
    /// known.
    pub fn inlined_at(&self) -> Option<At> {
        match self.0 {
            Place::Rust(_) => None,
            Place::Foreign(place) => place.inlined_at,
        }
    }

    /// The reference inside.
    #[doc(hidden)]
    #[inline]
    pub fn place(self) -> Place {
        self.0
    }

    /// Whether both are the same place in memory: one comparison, for fast paths. True means the same call in the source. False
    /// does not mean that the places differ: equal places may be stored twice.
    #[doc(hidden)]
    #[inline]
    pub fn is_same(&self, other: &At) -> bool {
        match (self.0, other.0) {
            (Place::Rust(here), Place::Rust(there)) => std::ptr::eq(here, there),
            (Place::Foreign(here), Place::Foreign(there)) => std::ptr::eq(here, there),
            _ => false,
        }
    }

    fn parts(&self) -> (&'static str, u32, u32, Option<&'static str>, Option<At>) {
        (self.file(), self.line(), self.column(), self.function(), self.inlined_at())
    }
}

impl From<&'static Location<'static>> for At {
    #[inline]
    fn from(location: &'static Location<'static>) -> At {
        At(Place::Rust(location))
    }
}

impl From<&'static Foreign> for At {
    fn from(place: &'static Foreign) -> At {
        At(Place::Foreign(place))
    }
}

impl PartialEq for At {
    fn eq(&self, other: &At) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By file, then line, then column.
impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// `file:line`, or the file alone if the line is not known. `{:#}` adds the call into which the function was inlined:
/// `copy.cuh:7, inlined at ring.cu:40`.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line() {
            0 => f.write_str(self.file())?,
            line => write!(f, "{}:{line}", self.file())?,
        }
        match self.inlined_at().filter(|_| f.alternate()) {
            Some(caller) => write!(f, ", inlined at {caller:#}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_place_is_made_once() {
        let [first, second] = [(); 2].map(|()| At::foreign("once.py", 3, 1, None));
        let (Place::Foreign(first), Place::Foreign(second)) = (first.0, second.0) else { panic!("both are foreign") };
        assert!(std::ptr::eq(first, second));
        assert_ne!(At::foreign("once.py", 3, 1, Some("f")), At::foreign("once.py", 3, 1, None));
    }

    #[test]
    fn places_are_ordered_by_file_and_line() {
        let places = [("b.py", 1), ("a.py", 10), ("a.py", 9)].map(|(file, line)| At::foreign(file, line, 0, None));
        let mut sorted = places;
        sorted.sort();
        assert_eq!(sorted.map(|at| at.to_string()), ["a.py:9", "a.py:10", "b.py:1"]);
        assert_eq!(At::foreign("start of the run", 0, 0, None).to_string(), "start of the run");
    }
}
