//! Kernels that poll a part of a word, or give up after a time or after many looks: that are waits, and a program of them has one class.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation};

const PARTS: &str = include_str!("../ptx/kernels/parts.ptx");

/// PE 1 waits in its way until PE 0 has told it so with this number, and takes the data.
fn waits<'a>(name: &'a str, number: u32) -> impl Fn(&Pe<Sim>) -> Result<()> + 'a {
    move |pe| {
        let (data, flag, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        let (module, stream) = (pe.module(&Source::ptx("parts.ptx", PARTS))?, pe.stream()?);
        let kernel = module.kernel(name)?;
        // SAFETY: the kernel takes these arguments.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1).collective(), args![&data, &flag, &seen, number])? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        onesided::expect_eq(pe.read_one(&seen)?, 7 * pe.my_pe() as i32, "the data")?;
        pe.free(seen)?;
        pe.free(flag)?;
        pe.free(data)
    }
}

#[test]
fn a_poll_of_a_part_or_with_a_limit_is_a_wait() {
    let kernels = [
        ("of_an_epoch", 5),
        ("of_a_bit", 3),
        ("of_a_packet", 5),
        ("of_the_highest_bit", 1),
        ("for_a_time", 5),
        ("so_often", 5),
        ("of_swapped_bytes", 5),
    ];
    for (name, number) in kernels {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let explored = simulation
            .explore(Explore::All { limit: 100 }, waits(name, number), |run| {
                assert!(run.is_ok(), "{name}: {}", run.verdict);
                std::ops::ControlFlow::<()>::Continue(())
            })
            .unwrap();
        assert_eq!((explored.schedules, explored.bound), (1, None), "{name}");
    }
}

/// What it waits for is said as it is compared.
#[test]
fn a_wait_for_a_part_in_vain_says_what_part() {
    let mut lines = Vec::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    simulation
        .explore(Explore::random(1, 1), waits("of_a_bit", 4), |run| {
            let text = run.verdict.to_string();
            lines.extend(text.lines().filter(|line| line.contains("found")).map(|line| line.trim().to_string()));
            std::ops::ControlFlow::<()>::Continue(())
        })
        .unwrap();
    insta::assert_snapshot!(lines.join("\n"), @"PE 1 stream 0, block 0, thread 0: in acquire load at parts.cu:10, inlined at parts.cu:44, inlined at parts.cu:33, inlined at parts.cu:44, waits for buf1+0 (made at backend-sim/tests/kernel_parts.rs:11) & 0x1 == 1, found 4 (u32)");
}
