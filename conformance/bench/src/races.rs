//! What looking for data races costs: the same programs with it and without it, in turn.

use onesided::{Pe, Result};
use onesided_sim::{Config, Races, Sim};

use super::bulk;
use super::lab::{Bench, Lab, endless, in_order_on};
use super::put;
use super::row::{Cell, Row, Target, Unit};

pub(super) fn benches() -> Vec<Bench> {
    let small = "races: 8 B put";
    let large = "races: 1 MiB put";
    vec![
        Bench::new(small, |lab| {
            let rounds = lab.times(1000);
            vec![row(lab, small, Unit::Ns, Target::TimesPeer(2.0), |pe| put::puts(pe, rounds))]
        }),
        Bench::new(large, |lab| {
            let count = lab.times(500);
            vec![row(lab, large, Unit::GBPerS, Target::TimesPeer(1.0 / 1.15), |pe| bulk::puts(pe, 1 << 20, count))]
        }),
    ]
}

fn row(lab: &Lab, name: &str, unit: Unit, target: Target, program: impl Fn(&Pe<Sim>) -> Result<f64>) -> Row {
    let measure = |races| -> Cell { in_order_on(Config { races, ..endless(2) }, &program) };
    let (with, without) = lab.race(unit, || measure(Races::Find), || measure(Races::Ignore));
    Row::new(name, unit, with).beside("the same, races not looked for", without).target(target)
}
