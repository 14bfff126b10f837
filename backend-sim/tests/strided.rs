//! Where each element of a strided transfer goes, and that nothing else is touched.

use onesided::{Pe, Result};
use onesided_sim::{Config, Sim};

use crate::common::{in_order, results};

/// Words of each PE: as many as the largest transfer here needs, and one more.
const WORDS: usize = 9;

/// A transfer: strides of target and source, elements, the first words of both.
#[derive(Clone, Copy, Debug)]
struct Case {
    strides: (usize, usize),
    count: usize,
    first: (usize, usize),
}

const CASES: [Case; 8] = [
    Case { strides: (1, 1), count: 3, first: (2, 1) },
    Case { strides: (2, 1), count: 1, first: (0, 0) },
    Case { strides: (2, 1), count: 2, first: (0, 0) },
    Case { strides: (2, 1), count: 4, first: (1, 0) },
    Case { strides: (1, 2), count: 4, first: (0, 1) },
    Case { strides: (2, 2), count: 4, first: (1, 0) },
    Case { strides: (3, 2), count: 3, first: (1, 4) },
    Case { strides: (1, 4), count: 2, first: (3, 4) },
];

/// Moves elements from PE 0's source to PE 1's target, by a put of the one or a get of the other; PE 1's target then.
fn moved(pe: &Pe<Sim>, Case { strides, count, first }: Case, put: bool) -> Result<Vec<u64>> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(WORDS)?, pe.alloc_zeroed::<u64>(WORDS)?);
    pe.write(&src, &std::array::from_fn::<u64, WORDS, _>(|i| i as u64 + 10))?;
    pe.host().barrier_all()?;
    match (pe.my_pe(), put) {
        (0, true) => pe.host().iput(dst.slice(first.0..), src.slice(first.1..), strides.0, strides.1, count, 1)?,
        (1, false) => pe.host().iget(dst.slice(first.0..), src.slice(first.1..), strides.0, strides.1, count, 0)?,
        _ => {}
    }
    pe.host().barrier_all()?;
    let target =
        if pe.my_pe() == 1 { (0..WORDS).map(|i| Ok(pe.read(dst.at(i))?[0])).collect() } else { Ok(Vec::new()) };
    pe.free(src)?;
    pe.free(dst)?;
    target
}

#[test]
fn elements_go_where_their_strides_say_and_nowhere_else() {
    for case in CASES {
        let mut expected = vec![0; WORDS];
        for i in 0..case.count {
            expected[case.first.0 + i * case.strides.0] = (case.first.1 + i * case.strides.1) as u64 + 10;
        }
        for put in [true, false] {
            let call = if put { "iput" } else { "iget" };
            assert_eq!(in_order(Config::pes(2), |pe| moved(pe, case, put))[1], expected, "{call} in order, {case:?}");
            for pieces in [1, 2, 4] {
                let config = Config { pieces, ..Config::pes(2) };
                let seen = results(config, |pe| moved(pe, case, put));
                assert_eq!(Vec::from_iter(seen.into_keys()), [[vec![], expected.clone()]], "{call}, {case:?}");
            }
        }
    }
}
