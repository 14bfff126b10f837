//! Groups of PEs: the predefined teams, and the three ways to make one.
//!
//! The tutorial's "Team Management". Its last cell passes the world's `n_pes` and `my_pe` to `team_init`, and no unique
//! id; here both count within the new team, and one member makes the id and gives it to the others.
//!
//! To see it break: call `team_split_strided` on the members only (a split is collective over the parent: a mismatch with what
//! the others call next), or give two members the same index.

use std::process::ExitCode;

use onesided::{Backend, Pe, Predefined, ReduceOp, Result, SymmetricBuf, Team, TeamConfig, TeamUniqueId, expect_eq};
use onesided_harness::Program;

/// PEs in a row of the 2-d split.
const XRANGE: usize = 2;
/// A 2-d split of fewer PEs would have a single row or column.
const PES_FOR_2D: usize = 4;

struct Teams;

impl Program for Teams {
    const NAME: &'static str = "teams";
    const ABOUT: &'static str = "Splits the PEs into teams, in all the ways there are.";
    const CHECKS: &'static str = "each of its teams has the members that the team names, and no other";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let n = pe.n_pes();
        let mut teams = Vec::new();

        // Every other PE, starting with PE 0. All PEs of the parent call; the others get no team.
        let evens = pe.team_split_strided(pe.world(), 0, 2, n.div_ceil(2), TeamConfig::default())?;
        teams.extend(evens.map(|team| ("even", team)));

        if n >= PES_FOR_2D {
            let (x, y) = pe.team_split_2d(pe.world(), XRANGE, TeamConfig::default(), TeamConfig::default())?;
            teams.extend([("row", x), ("column", y)]);
        }

        // A group that no start and stride describe, in an order of its own.
        let group: Vec<usize> = (0..n).rev().filter(|pe| pe % 3 != 1).collect();
        teams.extend(team_of(pe, &group)?.map(|team| ("picked", team)));

        let mine = pe.alloc::<u32>(1)?;
        let sum = pe.alloc::<u32>(1)?;
        pe.write(&mine, &[pe.my_pe() as u32])?;
        for (_, team) in &teams {
            meet(pe, team, &mine, &sum)?;
        }
        let report = report(pe, &teams);

        pe.free(sum)?;
        pe.free(mine)?;
        // Collective over each team: all PEs must go through their teams in the same order, as above.
        for (_, team) in teams {
            pe.team_destroy(team)?;
        }
        Ok(report)
    }
}

/// A team of the PEs in `group`, in that order; `None` on the others. Collective over the world.
fn team_of(pe: &Pe<impl Backend>, group: &[usize]) -> Result<Option<Team>> {
    let leader = group[0];
    let made = pe.alloc::<u64>(1)?;
    let received = pe.alloc::<u64>(1)?;
    if pe.my_pe() == leader {
        pe.write(&made, &[pe.team_unique_id()?.0])?;
    }
    pe.host().broadcast(pe.world(), &received, &made, leader)?;
    let unique_id = Some(TeamUniqueId(pe.read(&received)?[0]));
    pe.free(received)?;
    pe.free(made)?;

    let Some(index) = group.iter().position(|&member| member == pe.my_pe()) else {
        return Ok(None); // only the new members call team_init
    };
    pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, group.len(), index).map(Some)
}

/// The members add up their world ranks; each compares the sum with the members that the team names.
fn meet(pe: &Pe<impl Backend>, team: &Team, mine: &SymmetricBuf<u32>, sum: &SymmetricBuf<u32>) -> Result<()> {
    // Collectives do not synchronize on entry: every member must have read its last sum before one writes the next.
    pe.host().sync(team)?;
    pe.host().reduce(team, sum, mine, ReduceOp::Sum)?;
    expect_eq(pe.read(sum)?[0] as usize, team.members().iter().sum(), "the sum of the members' ranks")?;
    expect_eq(team.translate_pe(team.my_pe(), pe.world())?, Some(pe.my_pe()), "my team rank, translated to the world")
}

/// My place in every team; on PE 0, the predefined teams too.
fn report(pe: &Pe<impl Backend>, teams: &[(&str, Team)]) -> String {
    let place = |team: &Team| format!("rank {} of {:?}", team.my_pe(), team.members().iter().collect::<Vec<_>>());
    let own: Vec<String> = teams.iter().map(|(name, team)| format!("{name} {}", place(team))).collect();
    let own = if own.is_empty() { "in no new team".to_string() } else { own.join(", ") };
    let mut lines = format!("PE {}: {own}", pe.my_pe());
    if pe.my_pe() == 0 {
        let predefined = Predefined::ALL.map(|which| match pe.team(which) {
            Some(team) => format!("{} has {}", which.name(), team.n_pes()),
            None => format!("{} is not mine", which.name()),
        });
        lines = format!("predefined on PE 0: {}\n{lines}", predefined.join(", "));
    }
    lines
}

fn main() -> ExitCode {
    onesided_harness::main(Teams)
}
