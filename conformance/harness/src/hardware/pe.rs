//! A process that is a PE: what a program and a worker of the suite both do.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use onesided::{Backend, Bootstrap as _, Error, InitMethod, Pe, Result};
use onesided_nvshmem::{Nvshmem, Process, Settings};

use super::protocol::{Failure, Message, Missing, Panic, Ready};

/// A PE cannot go on, and the reason was reported already. The process must end without finalizing, because the other PEs
/// will not come to a collective any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost(
    /// The exit status.
    pub u8,
);

/// Becomes the PE that the launcher's environment describes.
pub fn init() -> Result<Pe<Nvshmem>> {
    Process::open(Settings::from_environment()?)?.init(InitMethod::Launcher)
}

/// The first message of a PE.
pub fn ready(pe: &Pe<impl Backend>) -> Message {
    Message::Ready(Ready {
        library: pe.version().library,
        status: pe.init_status().name().to_string(),
        missing: Missing::of(&pe.capabilities()),
    })
}

thread_local! {
    /// The line of this thread's last panic.
    static LINE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on notes the source lines of panics. Panics are printed as before.
fn note_lines_of_panics() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            LINE.set(info.location().map(|at| format!("{}:{}", at.file(), at.line())));
            before(info);
        }));
    });
}

/// Calls a program. Reports a failure or a panic.
pub fn guarded<T>(program: impl FnOnce() -> Result<T>, say: &dyn Fn(Message)) -> Result<T, Lost> {
    note_lines_of_panics();
    match panic::catch_unwind(AssertUnwindSafe(program)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(lost(&error, say)),
        Err(panic) => {
            say(Message::Panicked(Panic { text: message(&*panic), at: LINE.take() }));
            Err(Lost(101)) // what a panic ends a process with
        }
    }
}

/// Reports what failed.
pub fn lost(error: &Error, say: &dyn Fn(Message)) -> Lost {
    lost_with(Message::failed(error), say)
}

/// Reports that this process did not become a PE.
pub fn not_started(error: &Error, say: &dyn Fn(Message)) -> Lost {
    lost_with(Message::not_started(error), say)
}

fn lost_with(message: Message, say: &dyn Fn(Message)) -> Lost {
    let status = if matches!(message, Message::Failed(Failure { operating: true, .. })) { 2 } else { 1 };
    say(message);
    Lost(status)
}

/// A panic's message.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "with no message".to_string())
}
