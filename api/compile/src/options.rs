//! [`Source`] and [`Options`]: what is compiled, and how. Both are checked before NVRTC sees them, because NVRTC takes a folder that
//! does not exist without a word, and C takes a NUL for the end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{CompileError, input};

/// A CUDA C++ text with the name that errors, and findings in the kernel, call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// A text. The name need not be a file. `#include "…"` looks in the folder of the name first. A byte order mark, which some editors
    /// write before a text, is left out.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text: String = text.into();
        let text = text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text);
        Source { name: name.into(), text }
    }

    /// The text of a file, named by its path.
    ///
    /// # Errors
    /// [`CompileError::Input`] if the file cannot be read, or is not UTF-8.
    pub fn read(file: impl AsRef<Path>) -> Result<Source, CompileError> {
        let name = file.as_ref().display().to_string();
        let text = std::fs::read_to_string(&file).map_err(|why| input(&name, why.to_string()))?;
        Ok(Source::new(name, text))
    }

    pub(crate) fn check(&self) -> Result<(), CompileError> {
        if self.name.trim().is_empty() || self.name.contains(|c: char| c.is_control() || c == '"') {
            return Err(input(format!("the name {:?}", self.name), "expected the name of a file, such as axpy.cu"));
        }
        if self.text.trim().is_empty() {
            return Err(input(&self.name, "the text is empty; expected CUDA C++ with a kernel"));
        }
        match self.text.find('\0') {
            Some(at) => {
                let line = self.text[..at].matches('\n').count() + 1;
                Err(input(format!("{}:{line}", self.name), "the text has a NUL; expected CUDA C++ as plain text"))
            }
            None => Ok(()),
        }
    }
}

/// NVRTC's option for functions that do not say whose they are.
pub(crate) const DEFAULT_DEVICE: &str = "-default-device";

/// How a text is compiled. Always with `-rdc=true -std=c++17 -lineinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) architecture: String,
    pub(crate) includes: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) default_device: bool,
    pub(crate) names: BTreeSet<String>,
    pub(crate) nvrtc: Option<PathBuf>,
    pub(crate) cache: Cache,
}

/// Where PTX is cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Where the environment says.
    Usual,
    Folder(PathBuf),
    Off,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            architecture: "compute_90".to_string(),
            includes: Vec::new(),
            defines: Vec::new(),
            default_device: false,
            names: BTreeSet::new(),
            nvrtc: None,
            cache: Cache::Usual,
        }
    }
}

impl Options {
    /// For `compute_90`, without folders, macros and template instances.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// The virtual architecture, such as `compute_80`.
    #[must_use]
    pub fn architecture(mut self, architecture: impl Into<String>) -> Options {
        self.architecture = architecture.into();
        self
    }

    /// A folder in which `#include` looks, after those that were named before.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Options {
        self.includes.push(folder.into());
        self
    }

    /// A macro. An empty value defines it as nothing.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Options {
        self.defines.push((name.into(), value.into()));
        self
    }

    /// Functions without `__host__` and `__device__` are the device's (`-default-device`).
    #[must_use]
    pub fn default_device(mut self) -> Options {
        self.default_device = true;
        self
    }

    /// A name expression: an instance of a template that is to be compiled, such as `scale<float, 32>`, or any other kernel or
    /// function of the text. [`Ptx::name`](crate::Ptx::name) gives its name in the PTX.
    #[must_use]
    pub fn name(mut self, expression: impl Into<String>) -> Options {
        self.names.insert(expression.into());
        self
    }

    /// NVRTC's file, or the folder that holds it, instead of the usual places.
    #[must_use]
    pub fn nvrtc(mut self, path: impl Into<PathBuf>) -> Options {
        self.nvrtc = Some(path.into());
        self
    }

    /// The folder in which PTX is cached, instead of the usual one.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Options {
        self.cache = Cache::Folder(folder.into());
        self
    }

    /// Neither reads nor writes a cache.
    #[must_use]
    pub fn without_cache(mut self) -> Options {
        self.cache = Cache::Off;
        self
    }

    /// As NVRTC takes them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let fixed = ["-rdc=true", "-std=c++17", "-lineinfo"].map(str::to_string);
        let architecture = [format!("--gpu-architecture={}", self.architecture)];
        let folders = self.folders().into_iter().map(|folder| format!("-I{}", folder.display()));
        let defines = self.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
        let whose = self.default_device.then(|| DEFAULT_DEVICE.to_string());
        architecture.into_iter().chain(fixed).chain(whose).chain(folders).chain(defines).collect()
    }

    /// The include folders, from the root: what is compiled does not depend on the current folder.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        self.includes.iter().map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone())).collect()
    }

    pub(crate) fn check(&self) -> Result<(), CompileError> {
        if capability(&self.architecture).is_none() {
            let why = "expected a virtual architecture, such as compute_90; PTX is made for no other";
            return Err(input(format!("the architecture {:?}", self.architecture), why));
        }
        for folder in &self.includes {
            let what = || format!("the include folder {folder:?}");
            if folder.to_str().is_none_or(|path| path.contains('\0')) {
                return Err(input(what(), "expected a path in UTF-8 without a NUL"));
            }
            if !folder.is_dir() {
                return Err(input(what(), if folder.exists() { "it is not a folder" } else { "no such folder" }));
            }
        }
        for (name, value) in &self.defines {
            let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !begins || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                return Err(input(format!("the macro {name:?}"), "expected a name of letters, digits and _"));
            }
            if value.contains(['\0', '\n']) {
                return Err(input(format!("the macro {name}={value:?}"), "expected a value of one line without a NUL"));
            }
        }
        for name in &self.names {
            if name.trim().is_empty() || name.contains(['\0', '\n']) {
                let why = "expected a kernel with its template arguments, such as scale<float, 32>";
                return Err(input(format!("the name expression {name:?}"), why));
            }
        }
        Ok(())
    }
}

/// The number in the name of a virtual architecture: `compute_90`, `compute_90a` and `compute_100f` have one.
pub(crate) fn capability(architecture: &str) -> Option<i32> {
    let number = architecture.strip_prefix("compute_")?;
    let digits = number.strip_suffix(['a', 'f']).unwrap_or(number);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "__global__ void k() {}";

    #[test]
    fn a_text_that_is_none_is_refused_with_its_name_and_line_and_a_byte_order_mark_is_not() {
        for (name, text, expected) in [
            ("a.cu", " \n", "a.cu: the text is empty; expected CUDA C++ with a kernel"),
            ("a.cu", "x\ny\0", "a.cu:2: the text has a NUL; expected CUDA C++ as plain text"),
            ("", KERNEL, "the name \"\": expected the name of a file, such as axpy.cu"),
            ("a\0", KERNEL, "the name \"a\\0\": expected the name of a file, such as axpy.cu"),
        ] {
            assert_eq!(Source::new(name, text).check().unwrap_err().to_string(), expected);
        }
        assert_eq!(Source::new("a.cu", KERNEL).check(), Ok(()));
        assert_eq!(Source::new("a.cu", format!("\u{feff}{KERNEL}")), Source::new("a.cu", KERNEL));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.cu");
        std::fs::write(&file, format!("\u{feff}{KERNEL}")).unwrap();
        assert_eq!(Source::read(&file).unwrap().text, KERNEL);
        let absent = Source::read("no/such/kernel.cu").unwrap_err().to_string();
        assert!(absent.starts_with("no/such/kernel.cu: "), "{absent}");
    }

    #[test]
    fn an_option_that_cannot_be_is_refused_with_its_value() {
        let options = Options::new;
        let refused = [
            options().architecture("sm_90"),
            options().architecture("compute_"),
            options().architecture("compute_9x"),
            options().include("no/such/folder"),
            options().include("Cargo.toml"),
            options().include("a\0b"),
            options().define("", "1"),
            options().define("2N", "1"),
            options().define("N -I.", "1"),
            options().define("N", "1\n2"),
            options().name(" "),
            options().name("k\0"),
        ]
        .map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"));
        let fine = options().architecture("compute_100a").include("src").define("N", "1 + 2").name("k<3>");
        assert_eq!(fine.check(), Ok(()));
    }
}
