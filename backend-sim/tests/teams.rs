//! Teams that have members in common: what is in flight for one is not taken for what is in flight for another.

use onesided::{Cmp, Pe, Result, Team, TeamConfig, TeamUniqueId, expect_eq};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::common::visit_all;

/// All PEs, as a part of the world.
fn part(pe: &Pe<Sim>) -> Result<Team> {
    let all = pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default())?;
    Ok(all.expect("all PEs are members"))
}

/// PE 0 sends by one team while it sends by another one, and PE 1 receives in the other order. Returns what it has received last.
fn send_by_both(pe: &Pe<Sim>, [one, other]: [&Team; 2]) -> Result<u64> {
    let buf = pe.alloc_zeroed::<u64>(4)?;
    pe.write(buf.slice(2..4), &[5, 1 + pe.my_pe() as u64])?;
    let broadcast = || pe.host().broadcast(one, buf.at(0), buf.at(2), 0);
    let fcollect = || pe.host().fcollect(other, buf.slice(0..2), buf.at(3));
    if pe.my_pe() == 0 {
        broadcast()?;
        fcollect()?;
    } else {
        fcollect()?;
        broadcast()?;
    }
    pe.host().barrier_all()?;
    let received = pe.read(&buf)?;
    expect_eq(&received[1], &2, "what PE 1 has sent")?;
    pe.free(buf)?;
    Ok(received[0])
}

/// PE 1 may have received the one or the other last, in so many schedules.
fn sends_by_both(schedules: u64, program: impl Fn(&Pe<Sim>) -> Result<u64>) {
    let mut found = BTreeSet::new();
    let explored = visit_all(Config::pes(2), program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        found.insert(run.results.iter().flatten().copied().collect::<Vec<u64>>());
    });
    assert_eq!((explored.schedules, explored.redundant), (schedules, 0));
    assert_eq!(Vec::from_iter(found), [[1, 1], [1, 5]]);
}

/// The first unique id of PE 0, and the first part of the world: both have the number 1.
#[test]
fn a_team_from_a_unique_id_is_not_a_part_of_the_world() {
    sends_by_both(4, |pe| {
        let one = part(pe)?;
        let id = pe.alloc_zeroed::<u64>(1)?;
        pe.write(&id, &[pe.team_unique_id()?.0])?;
        pe.host().barrier_all()?;
        let unique_id = Some(TeamUniqueId(pe.host().g(&id, 0)?));
        let other = pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, 2, pe.my_pe())?;
        let received = send_by_both(pe, [&one, &other])?;
        pe.free(id)?;
        pe.team_destroy(other)?;
        pe.team_destroy(one)?;
        Ok(received)
    });
}

/// Transfers were named by 9 bits of a hash of their team, which the 55th and the 63rd part of the world have in common.
#[test]
fn of_many_teams_each_has_its_own_transfers() {
    sends_by_both(2, |pe| {
        (0..54).try_for_each(|_| pe.team_destroy(part(pe)?))?;
        let one = part(pe)?;
        (0..7).try_for_each(|_| pe.team_destroy(part(pe)?))?;
        let other = part(pe)?;
        let received = send_by_both(pe, [&one, &other])?;
        pe.team_destroy(other)?;
        pe.team_destroy(one)?;
        Ok(received)
    });
}

/// PE 0 has its part of a split when it ends the run, and PE 1 has not entered. Later runs know nothing of that.
#[test]
fn a_split_that_not_all_enter_takes_no_room_from_later_runs() {
    let program = |pe: &Pe<Sim>| {
        let flag = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        }
        let team = part(pe)?;
        expect_eq(&team.n_pes(), &3, "PE 0 is wrong")?;
        pe.team_destroy(team)?;
        pe.free(flag)
    };
    let mut simulation = Simulation::new(Config { max_teams: 10, ..Config::pes(2) }).unwrap();
    let explored = simulation.explore(Explore::random(20, 1), program, |run| {
        assert!(matches!(run.verdict.kind, VerdictKind::Failed { pe: 0, .. }), "{}", run.verdict);
        ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 20);
}
