use std::collections::BTreeSet;

use super::*;

const THREADS: usize = 7;
/// Threads of a block of the cluster.
const BLOCK: usize = 4;

/// Compares with all accesses up to the first race. A race is found if and only if one of them is unordered, and the race is with one of those.
#[test]
fn no_race_with_a_read_that_is_kept_no_more() {
    let (mut races, mut all_repeated, mut all_seen, mut late, mut narrow, mut random) = (0, 0, 0, 0, 0, 7_u64);
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for round in 0..200_000 {
        let several = round % 2 == 1; // blocks
        let mut order = Order::new(THREADS, 0, false);
        let mut shared = Shared::new(4, 4, true, several.then_some(BLOCK));
        let mut all = Vec::<Stamp>::new();
        let mut updates = BTreeSet::new(); // those that also read
        let mut over = BTreeSet::new(); // what comes before a later strong write, or was read by its thread
        let (mut now, mut told) = (0, [[0; THREADS]; THREADS]); // when each was told last of what each had done, elsewhere
        for _ in 0..60 {
            let thread = next(THREADS);
            let tell = |told: &mut [[u64; THREADS]; THREADS], now: u64, from: &[usize], into: &[usize]| {
                let mut row = [0; THREADS];
                for &one in from {
                    (0..THREADS).for_each(|other| row[other] = row[other].max(told[one][other]));
                    row[one] = now;
                }
                into.iter()
                    .for_each(|&to| (0..THREADS).for_each(|other| told[to][other] = told[to][other].max(row[other])));
            };
            match next(40) {
                0 => {
                    order.meet_all();
                    now += 1;
                    told = [[now; THREADS]; THREADS];
                }
                1..=4 => {
                    now += 1;
                    tell(&mut told, now, &[thread], &[next(THREADS)]);
                }
                5..=24 => {
                    let other = (thread + 1 + next(THREADS - 1)) % THREADS;
                    let (from, into) = ([thread, other], &[thread, other][..1 + next(2)]);
                    order.meet(&from, into);
                    now += 1;
                    tell(&mut told, now, &from, into);
                }
                kind => {
                    let writes = kind <= 29;
                    let strength = [Strength::Weak, Strength::Strong, Strength::Strong, Strength::InBlock][next(4)];
                    let strong = strength.is_strong();
                    let place = Place(next(2) as u32 + 2 * strength as u32); // an instruction has one strength
                    let repeats = writes && !strong && next(2) == 0;
                    let updates_it = writes && strong && next(3) == 0;
                    let touch = Touch {
                        thread,
                        place,
                        reads: !writes || updates_it,
                        is_blind: false,
                        writes,
                        strength,
                        repeats,
                        by: By::Thread,
                    };
                    let number = thread as u16;
                    let (epoch, clock) = (order.epoch, order.clock(thread));
                    let (first, last, moment) = (number, number, now);
                    let block = if several { (thread / BLOCK + 1) as u16 } else { 0 };
                    let strength = if several || !strong { strength } else { Strength::Strong };
                    let stamp =
                        Stamp { epoch, clock, place, first, last, strength, writes, by_thread: true, block, moment };
                    let latest = all.iter().rposition(|earlier| earlier.writes);
                    let (mut expected, mut forgotten, mut repeated) = (Vec::new(), Vec::new(), false);
                    for (at, earlier) in all.iter().enumerate() {
                        let learned = &mut |of: usize, moment| told[thread][of] > moment;
                        // of weak writes that others have repeated, a read meets the last one
                        let is_strong = earlier.strength.is_strong();
                        let is_wide = [earlier.strength, strength] == [Strength::Strong; 2];
                        let counts = (writes || latest == Some(at) || earlier.writes && is_strong)
                            && !(is_wide || is_strong && strong && earlier.block == block);
                        let Some(other) = earlier.unordered(&order, thread, learned).filter(|_| counts) else {
                            continue;
                        };
                        let until = all[at + 1..].iter().position(|later| later.writes);
                        let until = until.map(|until| until + usize::from(updates.contains(&(at + 1 + until))));
                        let mut reads = all[at + 1..].iter().take(until.unwrap_or(usize::MAX));
                        let is_seen =
                            |read: &Stamp| read.strength.is_strong() && read.precedes(&order, thread, learned);
                        let is_seen = earlier.writes && is_strong && reads.any(is_seen);
                        all_seen += usize::from(is_seen);
                        if is_seen {
                            continue;
                        }
                        if over.contains(&at) {
                            forgotten.push(Finding::of(earlier, other, false));
                            continue;
                        }
                        match repeats && earlier.writes && earlier.place == place {
                            true => repeated = true,
                            false => expected.push(Finding::of(earlier, other, false)),
                        }
                    }
                    let learned: Learned<'_> = &mut |of, moment| told[thread][of] > moment;
                    let (found, _) = shared.touch(0, 4, (touch, now), &order, Some(learned));
                    assert_eq!(found.is_some(), !expected.is_empty(), "{found:?} {expected:?}");
                    // what stands for several threads may be kept for one of them
                    let is_one = |found| expected.contains(&found) || forgotten.contains(&found);
                    assert!(found.is_none_or(is_one), "{found:?} {expected:?}");
                    all_repeated += usize::from(repeated && found.is_none());
                    if let Some(found) = found {
                        races += 1;
                        narrow += usize::from(strong && found.strength.is_strong());
                        late +=
                            usize::from(latest.is_some_and(|at| expected.iter().all(|one| one.place != all[at].place)));
                        break;
                    }
                    let learned = &mut |of: usize, moment| told[thread][of] > moment;
                    // whatever races with those that a strong write stands for races with it, too
                    let stands = |one: &Stamp| {
                        one.strength.is_strong()
                            && one.block == block
                            && (one.strength == Strength::Strong || strength == Strength::InBlock)
                    };
                    if updates_it {
                        over.extend(latest.filter(|&at| stands(&all[at])));
                        updates.insert(all.len());
                    }
                    if writes && strong {
                        for (at, _) in all.iter().enumerate().filter(|(_, one)| one.writes && stands(one)) {
                            let mut reads = all[at + 1..].iter().take_while(|later| !later.writes);
                            if reads.any(|read| read.strength.is_strong() && read.precedes(&order, thread, learned)) {
                                over.insert(at);
                            }
                        }
                        let is_before = |at: &usize| {
                            all[*at].unordered(&order, thread, learned).is_none()
                                && (stands(&all[*at]) || !all[*at].strength.is_strong())
                        };
                        over.extend((0..all.len()).filter(is_before));
                    } else if writes && !repeated {
                        over.extend(0..all.len());
                    }
                    all.push(stamp);
                }
            }
        }
    }
    let counts = (races, all_repeated, all_seen, late, narrow);
    assert!(races > 1_000 && all_repeated > 300 && all_seen > 300 && late > 300 && narrow > 300, "{counts:?}");
}

#[test]
fn what_a_block_reads_by_one_instruction_is_one_stamp() {
    let (order, mut shared) = (Order::new(256, 0, false), Shared::new(4, 4, true, None));
    for instruction in [1, 2, 1] {
        let place = Place(instruction);
        for thread in 0..256 {
            let touch = Touch::read(thread, place, By::Thread);
            assert_eq!(shared.touch(0, 4, (touch, 0), &order, Some(&mut |_, _| false)).0, None);
        }
    }
    assert_eq!(shared.cells[0].earlier.len(), 1);
}
