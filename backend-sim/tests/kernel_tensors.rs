//! Tiles of matrices, as tensor maps among a kernel's arguments describe them.

use std::ops::ControlFlow;

use crate::common::missing_for_a_copy;
use onesided::{Argument, ErrorKind, Grid, Pe, Result, Source, TensorLayout, args};
use onesided_sim::{Config, Explore, Races, Sim, Simulation, prove};

const TENSOR: &str = include_str!("../ptx/kernels/tensor.ptx");

// As in tensor.cu.
const NO_PHASE: i32 = 1;
const NO_FENCE: i32 = 2;
const NO_GROUP: i32 = 4;
const READ_ONLY: i32 = 8;
const REDUCE: i32 = 16;
const OVERWRITE: i32 = 32;
const TILE: [usize; 2] = [32, 8];

fn element(at: usize) -> f32 {
    (at * 37 % 101) as f32 - 50.0
}

/// Doubles a matrix of so many columns and rows that are so many elements apart, from external to symmetric memory. What is there then, and what
/// should be.
fn twice(pe: &Pe<Sim>, [columns, rows, apart]: [usize; 3], how: i32) -> Result<[Vec<f32>; 2]> {
    let from = pe.alloc_external::<f32>(rows * apart)?;
    // the matrix begins behind 8 elements
    let (to, seen) = (pe.alloc_zeroed::<f32>(8 + rows * apart)?, pe.alloc_zeroed::<f32>(1)?);
    pe.write(&from, &(0..rows * apart).map(element).collect::<Vec<_>>())?;
    pe.write(&to, &vec![1.0; 8 + rows * apart])?;
    let layout = TensorLayout::new(&[columns, rows], &TILE).strides(&[apart * 4]);
    let maps = [layout.map(&from)?, layout.map(to.slice(8..))?];
    let module = pe.module(&Source::ptx("tensor.ptx", TENSOR))?;
    let stream = pe.stream()?;
    let blocks = (columns.div_ceil(TILE[0]) as u32, rows.div_ceil(TILE[1]) as u32);
    // SAFETY: the kernel takes these arguments, and stores tiles to the second matrix.
    unsafe {
        let first = if how & OVERWRITE == 0 { Argument::from(to.slice(8..)) } else { Argument::from(&from) };
        let arguments = args![&maps[0], &maps[1], first, &seen, how];
        pe.on(&stream).launch(&module.kernel("twice")?, &Grid::new(blocks, 64), arguments)?;
    }
    pe.synchronize(&stream)?;
    let found = pe.read(&to)?;
    pe.free(seen)?;
    pe.free(to)?;
    pe.free_external(from)?;
    let old = if how & REDUCE == 0 { 0.0 } else { 1.0 };
    // Zeros are loaded from behind the end of a row, and stored in the rest of its last 16 bytes.
    let stored = |at: usize| match at.checked_sub(8).map(|at| at % apart) {
        Some(column) if column < columns => 2.0 * element(at - 8) + old,
        Some(column) if column < columns.next_multiple_of(4) => old,
        _ => 1.0,
    };
    let expected = (0..found.len()).map(stored);
    Ok([found, expected.collect()])
}

/// What is missing in the run in order, or what is wrong with it.
fn found(how: i32) -> String {
    missing_for_a_copy(1, |pe| twice(pe, [32, 8, 32], how))
}

#[test]
fn tiles_of_a_matrix_are_copied_and_nothing_besides() {
    for shape in [[100, 21, 104], [32, 8, 32], [5, 1, 8]] {
        for how in [0, REDUCE] {
            let run = Simulation::new(Config::pes(1)).unwrap().run(|pe: &Pe<Sim>| twice(pe, shape, how)).unwrap();
            let [[found, expected]] = &run.into_results().unwrap()[..] else { panic!("one PE") };
            assert_eq!(found, expected, "{shape:?}");
        }
    }
}

#[test]
fn every_schedule_copies_the_same() {
    for how in [0, REDUCE] {
        prove(2, move |pe: &Pe<Sim>| {
            let [found, expected] = twice(pe, [40, 9, 40], how)?;
            onesided::expect_eq(found, expected, "what was copied")
        });
    }
}

#[test]
fn what_is_missing_is_found() {
    for how in [0, REDUCE] {
        assert_eq!(found(how), "");
    }
    insta::assert_snapshot!(found(NO_PHASE));
    insta::assert_snapshot!(found(NO_FENCE));
    assert!(found(NO_FENCE | REDUCE).contains("missing: fence.proxy.async.shared::cta between"));
    insta::assert_snapshot!(found(NO_GROUP));
    assert_eq!(found(READ_ONLY), found(NO_GROUP));
    // What a load reads is in use until its phase ends.
    insta::assert_snapshot!(found(OVERWRITE));
}

/// A tensor that ends before its memory does not, a parameter that is no tensor map, and a map of another PE's memory.
#[test]
fn what_a_launch_refuses() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u32>(64)?;
        let map = TensorLayout::new(&[8, 8], &[4, 4]).map(&words)?;
        let ptx = "
            .version 9.0\n.target sm_90\n.address_size 64
            .visible .entry narrow(.param .align 8 .b8 map[128]) { ret; }
            .visible .entry short(.param .align 64 .b8 map[64]) { ret; }";
        let module = pe.module(&Source::ptx("refuses.ptx", ptx))?;
        let stream = pe.stream()?;
        let launch = |name: &str| {
            let kernel = module.kernel(name)?;
            // SAFETY: the kernels do nothing.
            unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1), args![&map]) }
        };
        let errors = ["narrow", "short"].map(|name| launch(name).unwrap_err());
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::InvalidArgument));
        pe.free(words)?;
        Ok(errors.map(|error| error.message().to_string()))
    });
    insta::assert_snapshot!(run.unwrap().into_results().unwrap()[0].join("\n"));
}

/// A map of memory that was freed is found when a kernel copies a tile of it.
#[test]
fn memory_of_a_map_that_was_freed() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe: &Pe<Sim>| {
        let (matrix, seen) = (pe.alloc_zeroed::<f32>(32 * 8)?, pe.alloc_zeroed::<f32>(1)?);
        let map = TensorLayout::new(&[32, 8], &TILE).map(&matrix)?;
        pe.free(matrix)?;
        let module = pe.module(&Source::ptx("tensor.ptx", TENSOR))?;
        let stream = pe.stream()?;
        // SAFETY: this is what the simulator finds.
        unsafe {
            pe.on(&stream).launch(&module.kernel("twice")?, &Grid::new(1, 64), args![&map, &map, &seen, &seen, 0])?
        };
        pe.synchronize(&stream)?;
        pe.free(seen)
    });
    let text = run.unwrap().verdict.to_string();
    assert!(text.contains("it was freed") && text.contains("tensor.cu:30"), "{text}");
}

/// Where races are no findings, each part of a copy is a step, and others may come between: the thread goes on with its tile where it was.
#[test]
fn a_copy_goes_on_where_it_was_stopped() {
    for how in [0, REDUCE] {
        let config = Config { races: Races::Note, ..Config::pes(2) };
        let mut runs = 0;
        let explored = Simulation::new(config).unwrap().explore(
            Explore::random(20, 3),
            |pe: &Pe<Sim>| twice(pe, [40, 3, 40], how),
            |run| {
                let are_right = run.results.iter().flatten().all(|[found, expected]| found == expected);
                assert!(are_right && run.results.len() == 2, "{}", run.verdict);
                runs += 1;
                ControlFlow::Continue(())
            },
        );
        explored.unwrap();
        assert_eq!(runs, 20);
    }
}
