//! What belongs to a PE besides its host.

use std::collections::BTreeMap;

use onesided::backend::AllocId;

use super::ids::{AgentId, ScopeId};
use super::stream::Record;

/// What belongs to a PE besides its host.
#[derive(Debug)]
pub(crate) struct PeState {
    pub(crate) host: AgentId,
    pub(crate) streams: Vec<AgentId>,
    /// The issue scopes: of what the host issues, what the streams issue, and what kernels issue.
    pub(crate) host_scope: ScopeId,
    pub(crate) stream_scope: ScopeId,
    pub(crate) kernel_scope: ScopeId,
    /// Blocks of kernels, by their numbers among the PE's agents, and their sizes: the agent of each, and then those of its threads.
    pub(crate) in_kernels: BTreeMap<(u32, u64), Vec<Option<AgentId>>>,
    /// Per event, its records.
    pub(crate) events: Vec<Vec<Record>>,
    /// Agents that wait on this PE's memory.
    pub(crate) waiting: Vec<AgentId>,
    /// Operations called so far, on all streams.
    pub(crate) called: u64,
    /// Non-blocking operations enqueued on its streams that have not started.
    pub(crate) unstarted: u32,
    /// Whether its streams have ever claimed what they need not deliver. Whether they still have it may matter from then on.
    pub(crate) lends: bool,
    pub(crate) initialized: bool,
    /// The program has called its last: whatever ends then is the end of the host.
    pub(crate) leaving: bool,
    /// The external memory that it registers.
    pub(crate) registering: Option<AllocId>,
    /// Teams that it is a member of and has not destroyed, without the predefined ones.
    pub(crate) teams: usize,
    /// How many of these it has become a member of so far.
    pub(crate) joined: u32,
    /// Teams that are made for it by splits that it has not entered yet.
    pub(crate) promised: usize,
}

impl PeState {
    pub(crate) fn new(host: AgentId, [host_scope, stream_scope, kernel_scope]: [ScopeId; 3]) -> PeState {
        PeState {
            host,
            streams: Vec::new(),
            host_scope,
            stream_scope,
            kernel_scope,
            in_kernels: BTreeMap::new(),
            events: Vec::new(),
            waiting: Vec::new(),
            called: 0,
            unstarted: 0,
            lends: false,
            initialized: false,
            leaving: false,
            registering: None,
            teams: 0,
            joined: 0,
            promised: 0,
        }
    }

    /// Everything that the PE issues, by scope.
    pub(crate) fn scopes(&self) -> [ScopeId; 3] {
        [self.host_scope, self.stream_scope, self.kernel_scope]
    }

    pub(crate) fn reset(&mut self, initialized: bool) {
        self.streams.clear();
        self.in_kernels.clear();
        self.events.clear();
        self.waiting.clear();
        self.called = 0;
        self.unstarted = 0;
        self.lends = false;
        self.initialized = initialized;
        self.leaving = false;
        self.registering = None;
        self.teams = 0;
        self.joined = 0;
        self.promised = 0;
    }
}
