//! Programs on which everybody agrees: the model itself, and the simulator, are held to what is written here.
//!
//! Words 0 and 1 are data, word 2 is a flag.

use onesided::Cmp;
use onesided::backend::AmoOp;
use onesided_sim::Profile;

use super::program::Op::*;
use super::program::{Call, Collective, Op, Program, Update, host, on};

const FLAG: usize = 2;

fn data(to: usize, value: u64) -> Call {
    host(P { to, dst: 0, value })
}

fn signal(to: usize) -> Call {
    host(Signal { to, update: Update { word: FLAG, value: 1, add: false } })
}

fn wait() -> Call {
    host(Wait { word: FLAG, cmp: Cmp::Ge, value: 1, signal: false })
}

fn read(src: usize) -> Call {
    host(Read { src, len: 1 })
}

fn add(to: usize, dst: usize, fetch: bool) -> Call {
    host(Amo { to, dst, op: AmoOp::Add, value: 1, cond: 0, fetch })
}

fn put_signal(dst: usize) -> Op {
    let signal = Some(Update { word: FLAG, value: 1, add: false });
    Put { to: 1, dst, src: 0, len: 1, nbi: false, signal }
}

fn put(len: usize) -> Op {
    Put { to: 1, dst: 0, src: 0, len, nbi: false, signal: None }
}

/// What the hosts see by the text, one after another.
#[track_caller]
fn seen<const N: usize>(hosts: [Vec<Call>; N]) -> Vec<String> {
    super::compare::seen(&Program::new(3, hosts), Profile::Spec)
}

#[test]
fn a_signal_overtakes_data_unless_a_fence_or_a_quiet_stands_between() {
    let look = || vec![wait(), read(0)];
    assert_eq!(seen([vec![data(1, 7), signal(1)], look()]), ["0", "7"]);
    assert_eq!(seen([vec![data(1, 7), host(Fence), signal(1)], look()]), ["7"]);
    assert_eq!(seen([vec![data(1, 7), host(Quiet), signal(1)], look()]), ["7"]);
}

#[test]
fn a_fence_is_about_one_target_and_a_quiet_about_all() {
    let send = |order| vec![data(1, 7), host(order), signal(2)];
    let look = || vec![wait(), host(G { from: 1, src: 0 })];
    assert_eq!(seen([send(Fence), vec![], look()]), ["0", "7"]);
    assert_eq!(seen([send(Quiet), vec![], look()]), ["7"]);
}

#[test]
fn a_quiet_is_about_its_own_scope() {
    let put = || [on(0, data(1, 7).op), host(Synchronize { stream: 0 })];
    let look = || vec![wait(), read(0)];
    assert_eq!(seen([put().into_iter().chain([host(Quiet), signal(1)]).collect(), look()]), ["0", "7"]);
    let on_stream = [on(0, Quiet), host(Synchronize { stream: 0 }), signal(1)];
    assert_eq!(seen([put().into_iter().chain(on_stream).collect(), look()]), ["7"]);
}

#[test]
fn an_event_orders_two_streams() {
    let first = || [on(0, data(1, 7).op), on(0, Quiet), on(0, Record { event: 0 })];
    let (ordered, second) = (on(1, WaitEvent { event: 0 }), on(1, signal(1).op));
    let look = || vec![wait(), read(0)];
    assert_eq!(seen([first().into_iter().chain([second]).collect(), look()]), ["0", "7"]);
    assert_eq!(seen([first().into_iter().chain([ordered, second]).collect(), look()]), ["7"]);
}

#[test]
fn a_put_signal_covers_its_own_data_only() {
    let write = || host(Write { dst: 0, len: 1, value: 7 });
    assert_eq!(seen([vec![write(), host(put_signal(0))], vec![wait(), read(0)]]), ["7"]);
    assert_eq!(seen([vec![write(), data(1, 5), host(put_signal(1))], vec![wait(), read(0)]]), ["0", "5"]);
}

#[test]
fn a_put_arrives_in_pieces() {
    let put = || vec![host(Write { dst: 0, len: 2, value: 7 }), host(put(2))];
    let look = || vec![read(0), read(1)];
    let program = |pieces| Program::new(3, [put(), look()]).in_pieces(pieces);
    assert_eq!(super::compare::seen(&program(1), Profile::Spec), ["0 0", "0 7", "7 7"]);
    assert_eq!(super::compare::seen(&program(2), Profile::Spec), ["0 0", "0 7", "7 0", "7 7"]);
}

#[test]
fn two_puts_to_a_word_are_ordered_by_a_fence_only() {
    let end = || host(Enter(Collective::Barrier));
    assert_eq!(seen([vec![data(1, 1), data(1, 2), end()], vec![end(), read(0)]]), ["1", "2"]);
    assert_eq!(seen([vec![data(1, 1), host(Fence), data(1, 2), end()], vec![end(), read(0)]]), ["2"]);
    let coherent = seen([vec![data(1, 1), host(Fence), data(1, 2)], vec![read(0), read(0)]]);
    assert_eq!(coherent, ["0 0", "0 1", "0 2", "1 1", "1 2", "2 2"]);
}

#[test]
fn a_barrier_completes_and_a_sync_does_not() {
    let program = |collective| [vec![data(1, 7), host(Enter(collective))], vec![host(Enter(collective)), read(0)]];
    assert_eq!(seen(program(Collective::Barrier)), ["7"]);
    assert_eq!(seen(program(Collective::Sync)), ["0", "7"]);
}

#[test]
fn the_source_of_a_nonblocking_put_is_read_until_the_flush() {
    let put = || host(Put { to: 1, dst: 0, src: 0, len: 1, nbi: true, signal: None });
    let write = |value| host(Write { dst: 0, len: 1, value });
    let end = || host(Enter(Collective::Barrier));
    let look = || vec![end(), read(0)];
    assert_eq!(seen([vec![write(1), put(), write(2), end()], look()]), ["1", "2"]);
    assert_eq!(seen([vec![write(1), put(), host(Flush), write(2), end()], look()]), ["1"]);
}

#[test]
fn a_nonblocking_get_lands_until_the_quiet() {
    let get = || host(Get { from: 1, dst: 0, src: 0, len: 1, nbi: true });
    let end = || host(Enter(Collective::Barrier));
    let have = || vec![host(Write { dst: 0, len: 1, value: 7 }), end()];
    assert_eq!(seen([vec![end(), get(), read(0)], have()]), ["0", "7"]);
    assert_eq!(seen([vec![end(), get(), host(Fence), read(0)], have()]), ["0", "7"]);
    assert_eq!(seen([vec![end(), get(), host(Quiet), read(0)], have()]), ["7"]);
}

#[test]
fn a_fence_orders_atomics_and_no_gets() {
    // store buffering: both see the old value
    let fetch = |to, dst| host(Amo { to, dst, op: AmoOp::Fetch, value: 0, cond: 0, fetch: true });
    let relaxed = |a, b| vec![add(0, a, false), fetch(0, b)];
    let fenced = |a, get| vec![add(0, a, false), host(Fence), get];
    assert_eq!(seen([relaxed(0, 1), relaxed(1, 0)]), ["0 0", "0 1", "1 0", "1 1"]);
    assert_eq!(seen([fenced(0, fetch(0, 1)), fenced(1, fetch(0, 0))]), ["0 1", "1 0", "1 1"]);
    let g = |src| host(G { from: 0, src });
    assert_eq!(seen([fenced(0, g(1)), fenced(1, g(0))]), ["0 0", "0 1", "1 0", "1 1"]);
}

#[test]
fn atomics_lose_no_update() {
    let end = || host(Enter(Collective::Barrier));
    let program = || vec![add(0, 0, true), end(), host(G { from: 0, src: 0 })];
    assert_eq!(seen([program(), program()]), ["0 2 1 2", "1 2 0 2"]);
}

#[test]
fn a_collective_of_a_team_is_its_members_business() {
    let enter = |team, what| host(EnterOf { team, what });
    let seen = |hosts: [Vec<Call>; 3]| {
        let program = Program::new(3, hosts).with_teams([&[2, 0], &[0, 2]]);
        super::compare::seen(&program, Profile::Spec)
    };
    let barrier = || enter(0, Collective::Barrier);
    assert_eq!(seen([vec![data(2, 7), barrier()], vec![], vec![barrier(), read(0)]]), ["7"]);
    // the root is a place in the team
    let broadcast = || enter(0, Collective::Broadcast { root: 0, dst: 1, src: 0, len: 1 });
    let write = || host(Write { dst: 0, len: 1, value: 7 });
    assert_eq!(seen([vec![broadcast(), read(1)], vec![], vec![write(), broadcast()]]), ["7"]);
    // two teams of the same PEs are two teams
    let sync = |team| enter(team, Collective::Sync);
    assert_eq!(seen([vec![sync(0), sync(1)], vec![], vec![sync(1), sync(0)]]), ["deadlock"]);
}
