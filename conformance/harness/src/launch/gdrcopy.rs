//! [`Gdrcopy`]: which library takes GDRCopy's part, through which NVSHMEM's transports apply signals and atomics.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::group::apart;

/// The name by which the transports open it.
const SONAME: &str = "libgdrapi.so.2";
/// The name by which cargo builds the stand-in.
const BUILT: &str = "libgdrapi.so";
/// The device of GDRCopy's driver.
const DRIVER: &str = "/dev/gdrdrv";
/// Names the library.
const VARIABLE: &str = "ONESIDED_GDRCOPY";

/// What takes GDRCopy's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gdrcopy {
    /// GDRCopy itself, which the loader finds. Its driver is there.
    OfTheMachine,
    /// A library that the user named.
    Named(PathBuf),
    /// The stand-in.
    StandIn(PathBuf),
}

impl Gdrcopy {
    /// What the user named; or GDRCopy, if its driver is there; or the stand-in beside this program.
    ///
    /// # Errors
    /// None of them is there, and what would help.
    pub(super) fn find(argument: Option<&Path>) -> Result<Gdrcopy, String> {
        let variable = || Some((PathBuf::from(env::var_os(VARIABLE).filter(|value| !value.is_empty())?), VARIABLE));
        let named = argument.map(|file| (file.to_path_buf(), "--gdrcopy")).or_else(variable);
        let beside: Vec<PathBuf> = super::beside_this_program().collect();
        Gdrcopy::choose(named, Path::new(DRIVER).exists(), &beside)
    }

    fn choose(named: Option<(PathBuf, &str)>, has_driver: bool, beside: &[PathBuf]) -> Result<Gdrcopy, String> {
        if let Some((path, by)) = named {
            let file = if path.is_dir() { path.join(BUILT) } else { path };
            let file = std::path::absolute(&file).unwrap_or(file);
            return match file.exists() {
                true if file.file_name().is_some_and(|name| name == BUILT) => Ok(Gdrcopy::StandIn(file)),
                true => Ok(Gdrcopy::Named(file)),
                false => Err(format!("{by} names {}, which is not there", file.display())),
            };
        }
        if has_driver {
            return Ok(Gdrcopy::OfTheMachine);
        }
        let stand_in = beside.iter().map(|folder| folder.join(BUILT)).find(|file| file.exists());
        stand_in.map(Gdrcopy::StandIn).ok_or_else(|| {
            format!(
                "GDRCopy is not here (no {DRIVER}), nor the stand-in for it, {BUILT} beside this program: build that by \
                 `cargo build --release -p onesided-gdrcopy`, or name it by --gdrcopy or {VARIABLE}"
            )
        })
    }

    pub(super) fn is_stand_in(&self) -> bool {
        matches!(self, Gdrcopy::StandIn(_))
    }

    /// Gives the library the name by which it is looked for, in a folder of its own. `None` if it has it already.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(super) fn install(&self) -> Result<Option<Installed>, String> {
        let (Gdrcopy::Named(file) | Gdrcopy::StandIn(file)) = self else { return Ok(None) };
        let wrong = |why: std::io::Error| format!("no folder for {SONAME}: {why}");
        let folder = tempfile::Builder::new().prefix("gdrcopy-").tempdir().map_err(wrong)?;
        link(file, &folder.path().join(SONAME)).map_err(wrong)?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(folder.path());
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = apart(&mut keeper)?.spawn().map_err(wrong)?;
        Ok(Some(Installed { folder, keeper }))
    }
}

/// This shell removes the folder when its pipe to this process closes, also if this process is killed.
const KEEPER: &str = "trap '' HUP INT QUIT TERM; read -r _; rm -rf -- \"$1\"";

/// A folder with the library. Dropping it removes the folder.
#[derive(Debug)]
pub(super) struct Installed {
    folder: TempDir,
    keeper: Child,
}

impl Installed {
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = self.keeper.wait(); // closes the pipe first
    }
}

impl fmt::Display for Gdrcopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gdrcopy::OfTheMachine => write!(f, "GDRCopy, with its driver {DRIVER}"),
            Gdrcopy::Named(file) => write!(f, "{}", file.display()),
            Gdrcopy::StandIn(file) => write!(f, "the stand-in, for heaps in host memory: {}", file.display()),
        }
    }
}

#[cfg(unix)]
fn link(file: &Path, name: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(file, name)
}

#[cfg(not(unix))]
fn link(file: &Path, name: &Path) -> std::io::Result<()> {
    std::fs::copy(file, name).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_real_one_comes_before_the_stand_in_and_what_was_named_before_both() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let beside = [folder.join("none"), folder.to_path_buf()];
        let why = Gdrcopy::choose(None, false, &beside).unwrap_err();
        assert!(why.contains("/dev/gdrdrv") && why.contains("cargo build --release -p onesided-gdrcopy"), "{why}");
        fs::write(folder.join(BUILT), "").unwrap();
        fs::write(folder.join(SONAME), "").unwrap();
        let stand_in = Gdrcopy::StandIn(folder.join(BUILT));
        assert_eq!(Gdrcopy::choose(None, false, &beside), Ok(stand_in.clone()));
        assert_eq!(Gdrcopy::choose(None, true, &beside), Ok(Gdrcopy::OfTheMachine));
        let named = |name: &str| Gdrcopy::choose(Some((folder.join(name), VARIABLE)), true, &[]);
        assert_eq!(named(""), Ok(stand_in));
        assert_eq!(named(SONAME), Ok(Gdrcopy::Named(folder.join(SONAME))));
        assert!(named("absent.so").unwrap_err().starts_with("ONESIDED_GDRCOPY names "));
    }

    #[cfg(unix)]
    #[test]
    fn it_gets_the_name_by_which_it_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(BUILT);
        fs::write(&file, "the library").unwrap();
        let installed = Gdrcopy::StandIn(file).install().unwrap().unwrap();
        assert_eq!(fs::read(installed.folder().join(SONAME)).unwrap(), b"the library");
        let path = installed.folder().to_path_buf();
        drop(installed);
        assert!(!path.exists());
        assert!(Gdrcopy::OfTheMachine.install().unwrap().is_none());
    }
}
