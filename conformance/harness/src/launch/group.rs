//! The process group of a job. It is ended as a whole, with grandchildren, and it does not outlive this process. A process can
//! leave its group (`setsid`, a shell with job control). Then the group does not reach it.
//!
//! The leader of the group is the *keeper*, a shell that waits for the end of its input. Only this process has the other end
//! of that pipe. When this process ends in any way, the pipe closes and the keeper kills its group. (A parent's death signal
//! would reach the children, but not their children.) No other group gets the number of this one before the keeper was
//! waited for.

use std::process::{Child, Command, Stdio};

/// The keeper survives the signals that are meant for the others in the group.
const KEEPER: &str = "trap '' HUP INT QUIT TERM USR1 USR2; read -r _; kill -KILL 0";

/// A process group and its keeper.
#[derive(Debug)]
pub(super) struct Group {
    keeper: Child,
    /// Whether the keeper was waited for. Then another group may have the number.
    is_over: bool,
}

impl Group {
    pub(super) fn start() -> Result<Group, String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", KEEPER]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        system::into_group(&mut shell, 0)?;
        let keeper = shell.spawn().map_err(|why| format!("sh cannot be started: {why}"))?;
        Ok(Group { keeper, is_over: false })
    }

    /// Puts the process that `command` will start into the group.
    pub(super) fn adopt(&self, command: &mut Command) -> Result<(), String> {
        system::into_group(command, self.keeper.id())
    }

    /// Asks all processes of the group to end.
    pub(super) fn terminate(&self) {
        if !self.is_over {
            system::terminate_group(self.keeper.id());
        }
    }

    /// Kills all processes of the group, and the keeper.
    pub(super) fn kill(&mut self) {
        if !self.is_over {
            system::kill_group(self.keeper.id());
            self.is_over = true;
            let _ = self.keeper.wait(); // frees the group's number
        }
    }
}

/// Puts the process that `command` will start into a group of its own, which a Ctrl-C at the terminal does not reach.
pub(super) fn apart(command: &mut Command) -> Result<&mut Command, String> {
    system::into_group(command, 0)?;
    Ok(command)
}

pub(super) use system::wait_for;

/// What std does not offer. Sending a signal fails only if no process is left, which is fine.
#[cfg(unix)]
mod system {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use rustix::io::Errno;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    pub(super) fn into_group(command: &mut Command, group: u32) -> Result<(), String> {
        command.process_group(group.cast_signed());
        Ok(())
    }

    pub(super) fn terminate_group(group: u32) {
        let _ = pid(group).map(|group| kill_process_group(group, Signal::TERM));
    }

    pub(super) fn kill_group(group: u32) {
        let _ = pid(group).map(|group| kill_process_group(group, Signal::KILL));
    }

    /// Waits until this child has ended, and leaves it a zombie. So no other process gets its number before somebody waits
    /// for it.
    pub(in super::super) fn wait_for(child: u32) {
        let Some(child) = pid(child) else { return };
        while matches!(waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(Errno::INTR)) {}
    }

    fn pid(number: u32) -> Option<Pid> {
        Pid::from_raw(number.cast_signed())
    }
}

/// Where there are no process groups, nothing is started.
#[cfg(not(unix))]
mod system {
    use std::process::Command;

    pub(super) fn into_group(_command: &mut Command, _group: u32) -> Result<(), String> {
        Err("PEs can be started on Unix systems only".to_string())
    }

    pub(super) fn terminate_group(_group: u32) {}

    pub(super) fn kill_group(_group: u32) {}

    pub(in super::super) fn wait_for(_child: u32) {}
}
