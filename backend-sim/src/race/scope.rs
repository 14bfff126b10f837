//! Scopes of fences and accesses of kernels: what is told in the scope of the system, everybody learns; in that of a GPU, agents of the same PE;
//! in that of a block, its threads. Another PE is another process, and may be on another GPU.

use std::collections::BTreeMap;

use onesided::At;
use onesided_ptx::Scope;

use super::{Told, View, join_told};
use crate::machine::{AgentId, PeId, Table};

/// What the fences or the release of a thread tell, by the scope in which it is told. What is told in a scope is told in each narrower one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoped {
    /// Everybody.
    pub(crate) system: Option<Told>,
    /// Others of the PE.
    pub(crate) gpu: Option<Narrow>,
    /// Others of the block.
    pub(crate) block: Option<Narrow>,
}

/// What is told in a scope that is narrower than the system, and the line of the last fence that has no wider one.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    pub(crate) told: Told,
    pub(crate) fence: Option<At>,
}

/// Those whom a narrow scope takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The threads of a block.
    Block(AgentId),
    /// The blocks of a PE.
    Gpu(PeId),
}

/// What a word tells within places.
pub(crate) type Nearby = BTreeMap<Place, Narrow>;

/// Whether a scope takes in blocks of other clusters. A cluster of blocks is one block here, as it is for the interpreter.
pub(crate) fn takes_in_blocks(scope: Scope) -> bool {
    scope > Scope::Cluster
}

impl Scoped {
    /// What a fence or a release tells. `at`: the line of the fence.
    pub(crate) fn of(told: Told, scope: Scope, at: Option<At>) -> Scoped {
        let narrow = |fence| Some(Narrow { told: told.clone(), fence });
        Scoped {
            block: narrow(at.filter(|_| !takes_in_blocks(scope))),
            gpu: if takes_in_blocks(scope) { narrow(at.filter(|_| scope != Scope::Sys)) } else { None },
            system: Some(told).filter(|_| scope == Scope::Sys),
        }
    }

    /// Tells what another one tells, too.
    pub(crate) fn join(&mut self, other: &Scoped) {
        // mostly they tell the same in all scopes: then they do behind that, too
        let (mine, theirs) = (self.is_wide(), other.is_wide());
        let [gpu, block] = [0, 1].map(|at| mine[at] && theirs[at]);
        join_told(&mut self.system, other.system.as_ref());
        join_narrow(&mut self.gpu, other.gpu.as_ref(), self.system.as_ref().filter(|_| gpu));
        let wider = self.gpu.as_ref().map(|gpu| &gpu.told);
        join_narrow(&mut self.block, other.block.as_ref(), wider.filter(|_| block));
    }

    /// Whether it tells a GPU what it tells everybody, and a block what it tells a GPU.
    fn is_wide(&self) -> [bool; 2] {
        let is = |one: Option<&Told>, other: Option<&Told>| one.zip(other).is_some_and(|(one, other)| one.is(other));
        let [gpu, block] = [&self.gpu, &self.block].map(|narrow| narrow.as_ref().map(|narrow| &narrow.told));
        [is(self.system.as_ref(), gpu), is(gpu, block)]
    }

    /// Tells everybody this, too.
    pub(crate) fn join_told(&mut self, told: &Told) {
        self.join(&Scoped::of(told.clone(), Scope::Sys, None));
    }

    /// A later fence of the same thread, which knows whatever the earlier ones have told.
    pub(crate) fn follow(&mut self, later: Scoped) {
        self.block = later.block;
        self.gpu = later.gpu.or_else(|| self.gpu.take());
        self.system = later.system.or_else(|| self.system.take());
    }
}

/// `both`: what the two tell together, where that is known.
fn join_narrow(one: &mut Option<Narrow>, other: Option<&Narrow>, both: Option<&Told>) {
    match (one.as_mut(), other) {
        (_, None) => {}
        (None, other) => *one = other.cloned(),
        (Some(one), Some(other)) => {
            match both {
                Some(both) => one.told = both.clone(),
                None => one.told.join(&other.told),
            }
            one.fence = other.fence.or(one.fence);
        }
    }
}

/// Adds what an update tells in narrow scopes to what the word told before.
pub(super) fn join_nearby(nearby: &mut Nearby, [block, gpu]: [Place; 2], scoped: &Scoped) {
    for (place, narrow) in [(block, &scoped.block), (gpu, &scoped.gpu)] {
        if let Some(narrow) = narrow {
            let mut joined = nearby.remove(&place);
            join_narrow(&mut joined, Some(narrow), None);
            nearby.extend(joined.map(|joined| (place, joined)));
        }
    }
}

/// The block and the GPU of an agent of a kernel.
pub(super) fn places(agent: AgentId, agents: &Table<AgentId, View>) -> [Place; 2] {
    let View { pe, block, .. } = agents[agent];
    [Place::Block(block.unwrap_or(agent)), Place::Gpu(pe)]
}
