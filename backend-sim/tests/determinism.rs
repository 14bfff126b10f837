//! Programs that do something else the second time: they are refused, with the first call that differs.

use std::cell::Cell;

use crate::common::without_lines;
use onesided::{Pe, Result};
use onesided_sim::{Config, Explore, Sim, Simulation};

/// What a search of all schedules says of a program.
fn search(program: impl Fn(&Pe<Sim>) -> Result<()>) -> String {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1000 }, program, |_| std::ops::ControlFlow::Continue(()));
    without_lines(explored.unwrap_err())
}

/// A PE that counts its runs in what all runs share.
fn counts(runs: &Cell<u64>) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 1 {
            runs.set(runs.get() + 1);
            for _ in 0..runs.get() % 3 {
                pe.host().atomic_inc(&word, 0)?;
            }
        }
        pe.host().atomic_fetch_inc(&word, 0)?;
        pe.free(word)
    }
}

#[test]
fn a_search_names_the_first_call_that_differs() {
    insta::assert_snapshot!(search(counts(&Cell::new(0))));
}

#[test]
fn a_second_run_names_the_first_call_that_differs() {
    let runs = Cell::new(0);
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(counts(&runs)).unwrap();
    let again = simulation.reproduce(&run, counts(&runs));
    insta::assert_snapshot!(without_lines(again.unwrap_err()));
}

/// Where runs of one schedule do the same from then on, the error has no call to name.
#[test]
fn a_difference_that_does_not_come_back_is_reported_all_the_same() {
    let first = Cell::new(true);
    let program = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 && first.replace(false) {
            pe.host().atomic_fetch_inc(&word, 0)?;
        }
        pe.free(word)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(program).unwrap();
    let said = simulation.reproduce(&run, program).unwrap_err().to_string();
    assert!(
        said.contains("must not use time, randomness or shared state") && !said.contains("first difference"),
        "{said}"
    );
}
