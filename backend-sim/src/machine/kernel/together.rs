//! Collective launches: all PEs launch the same kernel on grids of the same size, in the same order (`nvshmemx_collective_launch`).
//!
//! A launch returns at once and orders nothing, so it enters no team's sequence of collectives: launches are compared with launches.

use onesided::At;

use super::super::Machine;
use super::super::ids::{Id as _, PeId, TeamIndex};
use super::Launched;
use crate::verdict::{Entered, VerdictKind};

/// A launch that all PEs make, and who has.
#[derive(Debug)]
pub(super) struct Together {
    kernel: String,
    blocks: [u32; 3],
    calls: Vec<Entered>,
}

impl Launched {
    fn in_words(&self) -> String {
        let [x, y, z] = self.launch.grid;
        format!("launch of {} on {x} x {y} x {z} blocks", self.name)
    }
}

impl Machine {
    /// A PE launches a kernel together with all others. Whether that fits what the others have launched.
    pub(super) fn launch_together(&mut self, pe: PeId, launched: &Launched, at: At) -> bool {
        let has_called = |launch: &Together| launch.calls.iter().any(|call| call.pe == pe.index());
        let number = self.kernels.together.iter().take_while(|launch| has_called(launch)).count();
        let entered = Entered { pe: pe.index(), call: launched.in_words(), at };
        let Some(launch) = self.kernels.together.get_mut(number) else {
            let (kernel, blocks) = (launched.name.clone(), launched.launch.grid);
            self.kernels.together.push(Together { kernel, blocks, calls: vec![entered] });
            return true;
        };
        let differs = match launch {
            Together { kernel, .. } if *kernel != launched.name => Some("kernel"),
            Together { blocks, .. } if *blocks != launched.launch.grid => Some("grid"),
            Together { .. } => None,
        };
        launch.calls.push(entered);
        if let Some(field) = differs {
            self.launches_differ(number, field, None);
        }
        differs.is_none()
    }

    /// All PEs finalize: a launch that not all of them have made is a finding.
    pub(in crate::machine) fn launches_are_complete(&mut self) {
        let n = self.pes.len();
        let Some(number) = self.kernels.together.iter().position(|launch| launch.calls.len() < n) else { return };
        let calls = &self.kernels.together[number].calls;
        let other = (0..n).find(|pe| calls.iter().all(|call| call.pe != *pe));
        let finalizes = |pe: usize| {
            let at = self.agents[self.pes[PeId::new(pe)].host].at?;
            Some(Entered { pe, call: "finalize".into(), at })
        };
        let other = other.and_then(finalizes);
        self.launches_differ(number, "call", other);
    }

    fn launches_differ(&mut self, number: usize, field: &'static str, other: Option<Entered>) {
        let mut calls = self.kernels.together[number].calls.clone();
        calls.extend(other);
        calls.sort_by_key(|call| call.pe);
        let team = format!("{}'s collective launches", self.team_name(TeamIndex(0)));
        self.found(VerdictKind::Mismatch { team, number: number as u32, field, calls });
    }
}
