//! Teams: who takes part in a collective.
//!
//! A program owns the [`Team`]s that it makes. It only borrows predefined teams from the [`Pe`], so destroying one does not compile. A
//! PE outside a new team gets `None`, so it cannot call the team's collectives.

use std::fmt;

use crate::at::At;
use crate::backend::{Backend, NewTeams, TeamRequest};
use crate::brand::Brand;
use crate::count::count;
use crate::error::{Error, Result};
use crate::members::{Members, Predefined, TeamId};
use crate::pe::{LiveKind, Pe};

/// A value that identifies a team to be made with [`Pe::team_init`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamUniqueId(pub u64);

/// What a team was made with (`nvshmem_team_config_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TeamConfig {
    /// Number of contexts asked for. NVSHMEM accepts and ignores it.
    pub num_contexts: Option<u32>,
    /// The unique id, for [`Pe::team_init`].
    pub unique_id: Option<TeamUniqueId>,
}

/// A team that this PE is a member of.
///
/// The collective [`Pe::team_destroy`] consumes it: it cannot be destroyed twice, nor used afterwards. Predefined teams are only
/// borrowed:
/// ```compile_fail,E0507
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     pe.team_destroy(*pe.world()) // error: cannot move out of a reference
/// }
/// ```
pub struct Team {
    id: TeamId,
    brand: Brand,
    members: Members,
    my_pe: u32,
    config: TeamConfig,
}

impl Team {
    fn new<B: Backend>(pe: &Pe<B>, id: TeamId, members: Members, config: TeamConfig) -> Option<Team> {
        let my_pe = members.position(pe.my_pe())? as u32;
        Some(Team { id, brand: pe.brand, members, my_pe, config })
    }

    #[inline]
    pub(crate) fn brand(&self) -> Brand {
        self.brand
    }

    /// The team's name in reports and traces.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// assert_eq!(pe.world().id().to_string(), "TEAM_WORLD");
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn id(&self) -> TeamId {
        self.id
    }

    /// My rank in the team (`nvshmem_team_my_pe`). Local.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// assert_eq!(pe.world().my_pe(), pe.my_pe());
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.my_pe as usize
    }

    /// Number of members (`nvshmem_team_n_pes`). Local.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// assert_eq!(pe.world().n_pes(), 2);
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.members.len()
    }

    /// The members' world ranks, in team order.
    ///
    /// ```
    /// # onesided_sim::example(3, |pe| {
    /// assert!(pe.world().members().iter().eq(0..3));
    /// # Ok(()) });
    /// ```
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// What the team was made with (`nvshmem_team_get_config`). Local.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// assert_eq!(pe.world().config(), onesided::TeamConfig::default());
    /// # Ok(()) });
    /// ```
    pub fn config(&self) -> TeamConfig {
        self.config
    }

    /// The rank in `dest` of this team's member `pe`; `None` if it is not a member there (`nvshmem_team_translate_pe`). Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `pe` is not below [`Team::n_pes`] (the library takes
    /// `pe == n_pes` for PE 0), or the teams are not of the same PE and run.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let evens = pe.team_split_strided(pe.world(), 0, 2, pe.n_pes().div_ceil(2), Default::default())?;
    /// if let Some(evens) = evens {
    ///     assert_eq!(evens.translate_pe(0, pe.world())?, Some(0));
    ///     pe.team_destroy(evens)?;
    /// }
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn translate_pe(&self, pe: usize, dest: &Team) -> Result<Option<usize>> {
        if pe >= self.n_pes() {
            let message = format!("PE {pe} is not in the team, which has PEs 0 to {}", self.n_pes() - 1);
            return Err(Error::invalid("translate_pe", message, At::caller()));
        }
        if self.brand != dest.brand {
            let message = "dest belongs to another PE or to an earlier run; pass a team of the same PE and run";
            return Err(Error::invalid("translate_pe", message, At::caller()));
        }
        Ok(dest.members.position(self.members.get(pe)))
    }
}

/// # Teams
impl<B: Backend> Pe<B> {
    /// The team of all PEs (`NVSHMEM_TEAM_WORLD`). Local.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().barrier(pe.world())?;
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn world(&self) -> &Team {
        self.team(Predefined::World).expect("every PE is in the world")
    }

    /// A predefined team; `None` if this PE is not a member. Only [`Predefined::GpuLeaders`] has PEs that are not members.
    /// Local.
    ///
    /// ```
    /// # use onesided::Predefined;
    /// # onesided_sim::example(2, |pe| {
    /// let node = pe.team(Predefined::Node).expect("every PE is on a node");
    /// println!("PE {} of {} on this node", node.my_pe(), node.n_pes());
    /// # Ok(()) });
    /// ```
    pub fn team(&self, which: Predefined) -> Option<&Team> {
        let make = || {
            let members = self.backend.predefined(which)?;
            Team::new(self, which.id(), members, TeamConfig::default()).map(Box::new)
        };
        self.predefined[which as usize].get_or_init(make).as_deref()
    }

    /// A value that identifies a team which [`Pe::team_init`] will make (`nvshmemx_team_get_uniqueid`). Each call gives another one.
    /// One PE makes it and gives it to the other members.
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the library has no such call.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// assert_ne!(pe.team_unique_id()?, pe.team_unique_id()?);
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn team_unique_id(&self) -> Result<TeamUniqueId> {
        self.backend.team_unique_id(At::caller())
    }

    /// Makes a team of the parent's PEs `start`, `start + stride`, … (`size` of them); `None` on a PE outside it
    /// (`nvshmem_team_split_strided`).
    ///
    /// # Collective
    /// Over the parent, members and non-members of the new team, with the same arguments. Promises no synchronization: what a
    /// PE wrote before it may still be on its way when another PE returns. Data needs a barrier of its own.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `size` or `stride` is 0 or the last member lies outside the parent
    /// (the library accepts some of these and hangs later); [`OutOfTeams`](crate::ErrorKind::OutOfTeams) on all members alike when
    /// there is no room for another team.
    ///
    /// NVSHMEM documentation, "Team Management".
    ///
    /// ```
    /// # use onesided::TeamConfig;
    /// # onesided_sim::example(4, |pe| {
    /// let odd = pe.team_split_strided(pe.world(), 1, 2, 2, TeamConfig::default())?;
    /// if let Some(odd) = odd {
    ///     assert_eq!(odd.my_pe(), pe.my_pe() / 2); // PEs 1 and 3
    ///     pe.team_destroy(odd)?;
    /// }
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn team_split_strided(
        &self,
        parent: &Team,
        start: usize,
        stride: usize,
        size: usize,
        config: TeamConfig,
    ) -> Result<Option<Team>> {
        let call = self.call("team_split_strided", At::caller());
        let (id, n) = (call.team("parent", parent)?, parent.n_pes());
        if size == 0 || stride == 0 {
            let message = format!("size {size} and stride {stride} must be at least 1");
            return Err(call.refuse(message));
        }
        let last = (size - 1).checked_mul(stride).and_then(|span| span.checked_add(start));
        if last.is_none_or(|last| last >= n) {
            let message = format!(
                "start {start}, stride {stride}, size {size} reach past the parent, which has PEs 0 to {}",
                n - 1
            );
            return Err(call.refuse(message));
        }
        let members = parent.members.strided(start, stride, size);
        let request = TeamRequest::SplitStrided { parent: id, start, stride, members: &members, config };
        let NewTeams { first, .. } = self.backend.team(&request, call.at)?;
        Ok(first.map(|id| self.adopt(id, members, config, call.at)))
    }

    /// Lays the parent's PEs out in rows of `xrange` and returns my row (x) and my column (y)
    /// (`nvshmem_team_split_2d`). The last row may be shorter.
    ///
    /// # Collective
    /// Over the parent, with the same arguments. Promises no synchronization, as [`Pe::team_split_strided`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `xrange` is 0 (the library divides by it);
    /// [`OutOfTeams`](crate::ErrorKind::OutOfTeams) as for [`Pe::team_split_strided`]. An `xrange` above the parent's size counts as the
    /// parent's size, as in the library.
    ///
    /// ```
    /// # use onesided::TeamConfig;
    /// # onesided_sim::example(4, |pe| {
    /// let (row, column) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
    /// assert_eq!((row.my_pe(), column.my_pe()), (pe.my_pe() % 2, pe.my_pe() / 2));
    /// pe.team_destroy(row)?;
    /// pe.team_destroy(column)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn team_split_2d(
        &self,
        parent: &Team,
        xrange: usize,
        x_config: TeamConfig,
        y_config: TeamConfig,
    ) -> Result<(Team, Team)> {
        let call = self.call("team_split_2d", At::caller());
        let (id, n) = (call.team("parent", parent)?, parent.n_pes());
        if xrange == 0 {
            return Err(call.refuse("xrange must be at least 1"));
        }
        let xrange = xrange.min(n);
        let (row, column) = (parent.my_pe() / xrange, parent.my_pe() % xrange);
        let x_members = parent.members.strided(row * xrange, 1, xrange.min(n - row * xrange));
        let y_members = parent.members.strided(column, xrange, (n - column).div_ceil(xrange));
        let request = TeamRequest::Split2d {
            parent: id,
            xrange,
            x_members: &x_members,
            y_members: &y_members,
            x_config,
            y_config,
        };
        let at = call.at;
        let NewTeams { first, second } = self.backend.team(&request, at)?;
        let (x, y) = first.zip(second).expect("every member of the parent is in one row and one column");
        Ok((self.adopt(x, x_members, x_config, at), self.adopt(y, y_members, y_config, at)))
    }

    /// Makes a team of an arbitrary group: each member passes the same unique id (in `config`) and `n_pes`, and its
    /// own index (`nvshmemx_team_init`).
    ///
    /// # Collective
    /// Over the new team's members only. Promises no synchronization, as [`Pe::team_split_strided`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `config.unique_id` is missing, `n_pes` is 0 or above the number of PEs,
    /// or `index` is not below `n_pes`; [`OutOfTeams`](crate::ErrorKind::OutOfTeams). Members that disagree are a mismatch of the whole
    /// program: a verdict.
    ///
    /// ```
    /// # use onesided::{TeamConfig, TeamUniqueId};
    /// # onesided_sim::example(3, |pe| {
    /// # let id = pe.alloc::<u64>(1)?;
    /// pe.write(&id, &[pe.team_unique_id()?.0])?;
    /// pe.host().barrier_all()?;
    /// let unique_id = TeamUniqueId(pe.host().g(&id, 0)?); // PE 0's
    /// if pe.my_pe() != 1 {
    ///     let config = TeamConfig { unique_id: Some(unique_id), ..TeamConfig::default() };
    ///     let team = pe.team_init(config, 2, pe.my_pe() / 2)?; // PEs 0 and 2
    ///     pe.team_destroy(team)?;
    /// }
    /// # pe.free(id) });
    /// ```
    #[track_caller]
    pub fn team_init(&self, config: TeamConfig, n_pes: usize, index: usize) -> Result<Team> {
        let call = self.call("team_init", At::caller());
        // NVSHMEM's value for "not set"
        let Some(unique_id) = config.unique_id.filter(|id| id.0 != u64::MAX) else {
            return Err(call.refuse("config.unique_id is missing; make one with team_unique_id"));
        };
        if n_pes == 0 || n_pes > self.n_pes() || index >= n_pes {
            let pes = count(n_pes, "PE");
            let message = format!("index {index} of {pes}: expected index < n_pes <= {}", self.n_pes());
            return Err(call.refuse(message));
        }
        let request = TeamRequest::Init { unique_id, n_pes, index, config };
        let NewTeams { first, .. } = self.backend.team(&request, call.at)?;
        let id = first.expect("a PE that calls team_init is a member");
        let members = self.backend.team_members(id);
        Ok(self.adopt(id, members, config, call.at))
    }

    /// Ends a team (`nvshmem_team_destroy`).
    ///
    /// # Collective
    /// Over the team. Promises no synchronization, as [`Pe::team_split_strided`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when another PE or an earlier run made the team.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let all = pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), Default::default())?.expect("all are in it");
    /// pe.host().barrier(&all)?;
    /// pe.team_destroy(all)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn team_destroy(&self, team: Team) -> Result<()> {
        let call = self.call("team_destroy", At::caller());
        let team = call.team("team", &team)?;
        self.backend.team(&TeamRequest::Destroy { team }, call.at)?;
        self.settle(LiveKind::Team(team));
        Ok(())
    }

    fn adopt(&self, id: TeamId, members: Members, config: TeamConfig, at: At) -> Team {
        self.note(LiveKind::Team(id), 0, at);
        Team::new(self, id, members, config).expect("the backend gives ids to members only")
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (PE {} of {:?})", self.id, self.my_pe, self.members)
    }
}
