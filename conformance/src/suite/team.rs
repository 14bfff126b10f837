//! Teams: their members, how they are made and destroyed, and that each team has its own sequence of collectives.

use onesided::{Backend, Pe, Predefined, ReduceOp, Result, Team, TeamConfig, TeamUniqueId};

use super::misuse::everyone;
use super::rma::{free_all, kind, seen_by};
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        predefined_on_one_node: 2 => |case| case.needs_peer_access(),
        predefined_on_two_nodes: 4 => |case| case.nodes(2).needs_peer_access(),
        predefined_on_shared_gpus: 4 => |case| case.gpus(2),
        predefined_on_shared_gpus_of_two_nodes: 4 => |case| case.nodes(2).gpus(2),
        split_strided: 3,
        split_the_whole_parent: 2,
        split_one_member: 2,
        split_of_a_split: 4,
        split_2d_exact: 4,
        split_2d_ragged: 3,
        split_2d_wider_than_the_parent: 2,
        split_2d_of_a_split: 4,
        unique_ids_are_fresh: 1,
        team_init_unique_id_by_put: 3,
        team_init_unique_id_by_broadcast: 2,
        translate_pe: 4,
        config_is_kept: 2,
        destroyed_and_made_again: 2,
        splitting_orders_no_data: 2 racy,
        splitting_in_2d_orders_no_data: 2 racy,
        destroying_orders_no_data: 2 racy,
        a_barrier_after_a_split_orders_data: 2,
        team_barrier_completes_puts: 3,
        collectives_on_sibling_teams: 4,
        split_argument_errors: 2,
        team_init_argument_errors: 2,
    ]
}

/// World ranks of the members, in team order.
fn members(team: &Team) -> Vec<usize> {
    team.members().iter().collect()
}

/// My rank and the members, or nothing on a PE that is not in the team.
fn rank_and_members(team: Option<&Team>) -> Option<(usize, Vec<usize>)> {
    team.map(|team| (team.my_pe(), members(team)))
}

/// Ends a team on its members.
fn destroy<B: Backend>(pe: &Pe<B>, team: Option<Team>) -> Result<()> {
    team.map_or(Ok(()), |team| pe.team_destroy(team))
}

/// On one node whose PEs reach each other's memory, everybody is in the same world, shared and node teams, and alone with its rank within the node.
fn predefined_on_one_node<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("world", rank_and_members(pe.team(Predefined::World)))
        .and("shared", rank_and_members(pe.team(Predefined::Shared)))
        .and("node", rank_and_members(pe.team(Predefined::Node)))
        .and("same_mype_node", rank_and_members(pe.team(Predefined::SameMypeNode))))
}

/// Two nodes of two PEs: a node and what it shares are two PEs, and each PE has one counterpart on the other node.
fn predefined_on_two_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    predefined_on_one_node(pe)
}

/// Four PEs on two GPUs: two on each, and one of the two is the leader.
fn predefined_on_shared_gpus<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(same_gpu(pe))
}

/// The same with one GPU a node: the node is then the GPU, and the leaders are the first PEs of the nodes.
fn predefined_on_shared_gpus_of_two_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let gpu = pe.team(Predefined::SameGpu).map(members);
    let node = pe.team(Predefined::Node).map(members);
    Ok(same_gpu(pe).and("gpu_is_node", gpu == node))
}

/// Which PE is on which GPU is the launcher's choice, so only what follows from any choice is recorded.
fn same_gpu<B: Backend>(pe: &Pe<B>) -> Seen {
    let gpu = pe.team(Predefined::SameGpu);
    let leaders = pe.team(Predefined::GpuLeaders);
    seen("on_my_gpu", gpu.map(Team::n_pes))
        .and("first_leads", gpu.map(|gpu| gpu.my_pe() == 0) == Some(leaders.is_some()))
        .and("leaders_are_two", leaders.is_none_or(|leaders| leaders.n_pes() == 2))
        .and("world", pe.world().n_pes())
}

/// Every second PE joins a team. The PE between them is not a member, but calls too.
fn split_strided<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let evens = pe.team_split_strided(pe.world(), 0, 2, 2, TeamConfig::default())?;
    let saw = seen("evens", rank_and_members(evens.as_ref()));
    destroy(pe, evens)?;
    Ok(saw)
}

/// A team of all the parent's members is a different team.
fn split_the_whole_parent<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let all = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
    let is_new = all.as_ref().map(|all| all.id() != pe.world().id());
    let saw = seen("all", rank_and_members(all.as_ref())).and("is_new", is_new);
    destroy(pe, all)?;
    Ok(saw)
}

/// A team of one: its barrier waits for no other PE, and its collectives copy.
fn split_one_member<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let single = pe.team_split_strided(pe.world(), 1, 1, 1, TeamConfig::default())?;
    let mut saw = seen("single", rank_and_members(single.as_ref()));
    if let Some(single) = &single {
        pe.write(&x, &[1])?;
        pe.host().barrier(single)?;
        pe.host().reduce(single, &x, &x, ReduceOp::Sum)?;
        saw = saw.and("x", pe.read(&x)?[0]);
    }
    destroy(pe, single)?;
    pe.free(x)?;
    Ok(saw)
}

/// A split of a split: ranks and strides count in the parent, members are world ranks. A PE that is not in the first
/// team does not take part in the second split.
fn split_of_a_split<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let last_three = pe.team_split_strided(pe.world(), 1, 1, 3, TeamConfig::default())?;
    let ends = match &last_three {
        Some(parent) => pe.team_split_strided(parent, 0, 2, 2, TeamConfig::default())?,
        None => None,
    };
    let saw = seen("last_three", rank_and_members(last_three.as_ref())).and("ends", rank_and_members(ends.as_ref()));
    destroy(pe, ends)?;
    destroy(pe, last_three)?;
    Ok(saw)
}

/// Four PEs in rows of two: two rows, two columns.
fn split_2d_exact<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    split_2d(pe, pe.world(), 2)
}

/// Three PEs in rows of two: the last row and the last column have one member.
fn split_2d_ragged<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    split_2d(pe, pe.world(), 2)
}

/// Two PEs in rows of five: one row of all, columns of one.
fn split_2d_wider_than_the_parent<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    split_2d(pe, pe.world(), 5)
}

/// Rows and columns of a team that is not the world: PEs 1 to 3 in rows of two.
fn split_2d_of_a_split<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let parent = pe.team_split_strided(pe.world(), 1, 1, 3, TeamConfig::default())?;
    let saw = match &parent {
        Some(parent) => split_2d(pe, parent, 2)?,
        None => Seen::nothing(),
    };
    destroy(pe, parent)?;
    Ok(saw)
}

fn split_2d<B: Backend>(pe: &Pe<B>, parent: &Team, xrange: usize) -> Result<Seen> {
    let (row, column) = pe.team_split_2d(parent, xrange, TeamConfig::default(), TeamConfig::default())?;
    let saw = seen("row", rank_and_members(Some(&row))).and("column", rank_and_members(Some(&column)));
    pe.team_destroy(row)?;
    pe.team_destroy(column)?;
    Ok(saw)
}

/// Two unique ids of one PE differ.
fn unique_ids_are_fresh<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("differ", pe.team_unique_id()? != pe.team_unique_id()?))
}

/// PEs 2 and 0, in this order, make a team that no split gives. PE 2 makes the id and puts it to PE 0; PE 1 takes no
/// part.
fn team_init_unique_id_by_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    let mut id = None;
    if pe.my_pe() == 2 {
        let fresh = pe.team_unique_id()?;
        pe.host().p(&word, fresh.0, 0)?;
        id = Some(fresh);
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        id = Some(TeamUniqueId(pe.read(&word)?[0]));
    }
    let team = match id {
        Some(id) => Some(init(pe, id, 2, usize::from(pe.my_pe() == 0))?),
        None => None,
    };
    let saw = seen("team", rank_and_members(team.as_ref()));
    destroy(pe, team)?;
    pe.free(word)?;
    Ok(saw)
}

/// The world in reverse order; PE 0 makes the id and broadcasts it.
fn team_init_unique_id_by_broadcast<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (mine, shared) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&mine, &[pe.team_unique_id()?.0])?;
    }
    pe.host().broadcast(pe.world(), &shared, &mine, 0)?;
    let id = TeamUniqueId(pe.read(&shared)?[0]);
    let team = init(pe, id, 2, 1 - pe.my_pe())?;
    let saw = seen("team", rank_and_members(Some(&team)));
    pe.team_destroy(team)?;
    free_all(pe, [shared, mine])?;
    Ok(saw)
}

fn init<B: Backend>(pe: &Pe<B>, id: TeamUniqueId, n_pes: usize, index: usize) -> Result<Team> {
    pe.team_init(TeamConfig { unique_id: Some(id), ..TeamConfig::default() }, n_pes, index)
}

/// Ranks translate from a team to the world and back; a PE that is not in the other team has none there, and a rank
/// that the team does not have is an error (the library takes its size for PE 0).
fn translate_pe<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let odds = pe.team_split_strided(pe.world(), 1, 2, 2, TeamConfig::default())?;
    let saw = match &odds {
        Some(odds) => seen("to_world", [odds.translate_pe(0, pe.world())?, odds.translate_pe(1, pe.world())?])
            .and("from_world", [pe.world().translate_pe(2, odds)?, pe.world().translate_pe(3, odds)?])
            .and("past_the_end", kind(odds.translate_pe(2, pe.world()))),
        None => Seen::nothing(),
    };
    destroy(pe, odds)?;
    Ok(saw)
}

/// A team's configuration is the one that it was made with; rows and columns have their own.
fn config_is_kept<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let contexts = |n| TeamConfig { num_contexts: Some(n), ..TeamConfig::default() };
    let (row, column) = pe.team_split_2d(pe.world(), 1, contexts(1), contexts(2))?;
    let saw = seen("row", row.config().num_contexts)
        .and("column", column.config().num_contexts)
        .and("world", pe.world().config().num_contexts);
    pe.team_destroy(row)?;
    pe.team_destroy(column)?;
    Ok(saw)
}

/// A team that was destroyed can be made again, any number of times.
fn destroyed_and_made_again<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let all = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
        if let Some(all) = &all {
            pe.host().barrier(all)?;
            sizes.push(all.n_pes());
        }
        destroy(pe, all)?;
    }
    Ok(seen("sizes", sizes))
}

/// A split is collective and orders no data: PE 1 may return from it before PE 0, which puts first, calls it.
fn splitting_orders_no_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe, team| Ok(vec![team, everyone(pe)?]))
}

/// The same with rows and columns.
fn splitting_in_2d_orders_no_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe, team| {
        let (row, column) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
        Ok(vec![team, row, column])
    })
}

/// `team_destroy` orders no data either.
fn destroying_orders_no_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe, team| {
        pe.team_destroy(team)?;
        Ok(Vec::new())
    })
}

/// To order its data the program calls a barrier, of the new team for example.
fn a_barrier_after_a_split_orders_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe, team| {
        pe.host().barrier(&team)?;
        Ok(vec![team])
    })
}

/// PE 0 puts and quiets; then both do something with a team, and PE 1 reads. Returns the teams that are left.
fn put_then<B: Backend>(pe: &Pe<B>, meet: fn(&Pe<B>, Team) -> Result<Vec<Team>>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let team = everyone(pe)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().quiet()?;
    }
    let teams = meet(pe, team)?;
    let saw = seen_by(pe, 1, &x)?;
    teams.into_iter().try_for_each(|team| pe.team_destroy(team))?;
    pe.free(x)?;
    Ok(saw)
}

/// A put takes a *world* rank. A barrier of a team completes it, without the PE that is not a member.
fn team_barrier_completes_puts<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let pair = pe.team_split_strided(pe.world(), 1, 1, 2, TeamConfig::default())?;
    let mut saw = Seen::nothing();
    if let Some(pair) = &pair {
        if pair.my_pe() == 0 {
            pe.host().p(&x, 1, pair.members().get(1))?;
        }
        pe.host().barrier(pair)?;
        if pair.my_pe() == 1 {
            saw = seen("x", pe.read(&x)?[0]);
        }
    }
    destroy(pe, pair)?;
    pe.free(x)?;
    Ok(saw)
}

/// Two rows of two PEs sum their world ranks at the same time: the sums do not mix.
fn collectives_on_sibling_teams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (rank, sum) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (row, column) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
    pe.write(&rank, &[pe.my_pe() as u32])?;
    pe.host().reduce(&row, &sum, &rank, ReduceOp::Sum)?;
    let of_row = pe.read(&sum)?[0];
    // no entry synchronization: `sum` is free on every member only once all have read it
    pe.host().sync_all()?;
    pe.host().reduce(&column, &sum, &rank, ReduceOp::Sum)?;
    let of_column = pe.read(&sum)?[0];
    pe.team_destroy(row)?;
    pe.team_destroy(column)?;
    free_all(pe, [sum, rank])?;
    Ok(seen("of_row", of_row).and("of_column", of_column))
}

/// Splits that make no team are refused on every PE, before the library sees them: it would accept several.
fn split_argument_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let split = |start, stride, size| kind(pe.team_split_strided(pe.world(), start, stride, size, Default::default()));
    let of_row_length_0 = kind(pe.team_split_2d(pe.world(), 0, TeamConfig::default(), TeamConfig::default()));
    Ok(seen("no_member", split(0, 1, 0))
        .and("stride_0", split(0, 0, 1))
        .and("start_past_the_end", split(2, 1, 1))
        .and("last_past_the_end", split(0, 2, 2))
        .and("more_than_can_be_counted", split(1, usize::MAX, usize::MAX))
        .and("of_row_length_0", of_row_length_0))
}

/// A `team_init` without an id, or with an index that cannot be, is refused without waiting for other PEs.
fn team_init_argument_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let id = TeamUniqueId(1); // refused before anybody looks at it
    Ok(seen("no_id", kind(pe.team_init(TeamConfig::default(), 2, 0)))
        .and("no_pes", kind(init(pe, id, 0, 0)))
        .and("more_pes_than_there_are", kind(init(pe, id, 3, 0)))
        .and("index_past_the_end", kind(init(pe, id, 2, 2))))
}
