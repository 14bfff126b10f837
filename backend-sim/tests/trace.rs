//! What a trace says beyond the order of events: values, what belongs to what, and what ended a wait.

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Event, EventKind, Races, Run, Schedule, Sim, Simulation};

/// The trace of one run.
fn trace<T>(schedule: &str, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Vec<Event> {
    let schedule: Schedule = schedule.parse().unwrap();
    let config = schedule.configure(&Config { races: Races::Note, ..Config::default() });
    let run: Run<T> = Simulation::new(config).unwrap().replay(&schedule, program).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
    run.trace.unwrap()
}

const IN_ORDER: &str = "os2.2x1.spec.p4.o.none";
const AT_RANDOM: &str = "os2.2x1.spec.p4.r7.none";

fn with_signal(pe: &Pe<Sim>) -> Result<()> {
    let (src, dst) = (pe.alloc::<f32>(3)?, pe.alloc_zeroed::<f32>(3)?);
    let flag = pe.alloc_zeroed::<u64>(1)?;
    match pe.my_pe() {
        0 => {
            pe.write(&src, &[1.0, 2.5, -3.0])?;
            pe.host().put_signal(&dst, &src, flag.signal(0), 7, SignalOp::Add, 1)?;
        }
        _ => drop(pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 7)?),
    }
    drop(pe.read(&dst)?);
    pe.free(flag)?;
    pe.free(dst)?;
    pe.free(src)
}

fn named(event: &Event) -> &'static str {
    match &event.kind {
        EventKind::Call(name) => name,
        EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => op.name(),
        EventKind::SourceRead { .. } => "source read",
        EventKind::Delivered { .. } => "delivered",
        EventKind::Signaled { .. } => "signaled",
        EventKind::Returned { .. } => "returned",
        EventKind::Entered { .. } => "entered",
        _ => "memory",
    }
}

/// The values of the events with this name, pieces of one after the other.
fn values(trace: &[Event], name: &str) -> Vec<String> {
    let of = trace.iter().filter(|event| named(event) == name && event.pe == 0);
    of.flat_map(|event| event.moved.as_ref().map(|moved| moved.texts()).unwrap_or_default()).collect()
}

#[test]
fn a_transfer_can_be_followed_from_its_call_to_the_wait_that_it_ends() {
    for schedule in [IN_ORDER, AT_RANDOM] {
        let trace = trace(schedule, with_signal);
        let number_of = |name| trace.iter().position(|event| named(event) == name).unwrap();
        let put = number_of("put_signal");
        for (number, event) in trace.iter().enumerate() {
            if matches!(named(event), "source read" | "delivered" | "signaled") {
                assert_eq!(event.of, Some(put), "{schedule}: {number}");
            }
        }
        let mut delivered = values(&trace, "delivered");
        delivered.sort();
        assert_eq!(delivered, ["-3.0", "1.0", "2.5"], "{schedule}");

        let signal = number_of("signaled");
        assert_eq!(trace[signal].moved.as_ref().unwrap().to_string(), "0 -> 7");
        let returned = trace.iter().find(|event| named(event) == "returned" && event.moved.is_some()).unwrap();
        assert_eq!((returned.pe, returned.moved.as_ref().unwrap().texts()), (1, vec!["7".to_string()]));
        let EventKind::Returned { call: "signal_wait_until", by, .. } = returned.kind else { panic!("{returned:?}") };
        assert_eq!((by, named(&trace[returned.of.unwrap()])), (Some(signal), "signal_wait_until"));
    }
}

/// Of several updates the last one before its end is what a wait has seen; pieces of other words are none of them.
#[test]
fn a_wait_names_the_delivery_that_ended_it_and_no_other() {
    let program = |pe: &Pe<Sim>| {
        let (src, words) = (pe.alloc::<u32>(8)?, pe.alloc_zeroed::<u32>(8)?);
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.write(&src, &[5; 8])?;
            pe.host().put(&words, &src, 1)?;
            pe.host().quiet()?;
            pe.host().p(&x, 1, 1)?;
        } else {
            pe.host().wait_until(words.at(7), Cmp::Eq, 5)?;
            pe.host().wait_until(&x, Cmp::Eq, 1)?;
            pe.host().wait_until(&x, Cmp::Ge, 0)?;
        }
        pe.free(x)?;
        pe.free(words)?;
        pe.free(src)
    };
    for seed in 0..30 {
        let trace = trace(&format!("os2.2x1.spec.p4.r{seed:x}.none"), program);
        let ended_by: Vec<(String, Option<u16>)> = (trace.iter())
            .filter_map(|event| match event.kind {
                EventKind::Returned { call: "wait_until", by: Some(by), .. } => Some(&trace[by]),
                _ => None,
            })
            .map(|update| match update.kind {
                EventKind::Delivered { piece, .. } => {
                    (named(&trace[update.of.unwrap()]).to_string(), Some(piece).filter(|_| update.step > 0))
                }
                _ => (named(update).to_string(), None),
            })
            .collect();
        let by = |name: &str, piece| (name.to_string(), Some(piece));
        assert_eq!(ended_by, [by("put", 3), by("p", 0), by("p", 0)], "seed {seed}");
    }
    // nothing has written the word: it was right from the start
    let at_once = trace(IN_ORDER, |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        pe.host().wait_until(&x, Cmp::Eq, 0)?;
        pe.free(x)
    });
    let by: Vec<_> = (at_once.iter())
        .filter_map(|event| match event.kind {
            EventKind::Returned { call: "wait_until", by, .. } => Some(by),
            _ => None,
        })
        .collect();
    assert_eq!(by, [None, None]);
}

#[test]
fn what_a_stream_does_belongs_to_the_call_that_enqueued_it() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let (a, b) = (pe.stream()?, pe.stream()?);
        let ready = pe.event()?;
        pe.on(&a).p(&x, 1, 1)?;
        pe.record(&ready, &a)?;
        pe.wait_event(&ready, &b)?;
        pe.on(&b).quiet()?;
        pe.synchronize(&b)?;
        pe.host().barrier_all()?;
        pe.free(x)
    };
    for schedule in [IN_ORDER, AT_RANDOM] {
        let trace = trace(schedule, program);
        let mut ended = 0;
        for event in trace.iter().filter(|event| event.stream.is_some()) {
            let of = &trace[event.of.unwrap()];
            assert_eq!(
                (named(of), of.at),
                (if named(event) == "returned" { named(of) } else { named(event) }, event.at)
            );
            if named(event) != "returned" {
                assert_eq!(of.stream, None, "the host has enqueued it");
            }
        }
        for event in &trace {
            let EventKind::Returned { call: "synchronize" | "wait_event", by: Some(by), .. } = event.kind else {
                continue;
            };
            assert_eq!((trace[by].pe, trace[by].stream.is_some()), (event.pe, true));
            ended += 1;
        }
        assert_eq!(ended, 4, "{schedule}");
    }
}

#[test]
fn entries_into_one_collective_share_their_first() {
    let program = |pe: &Pe<Sim>| {
        let (src, dst) = (pe.alloc::<i32>(2)?, pe.alloc::<i32>(2)?);
        pe.write(&src, &[pe.my_pe() as i32 + 1; 2])?;
        pe.host().barrier_all()?;
        pe.host().reduce(pe.world(), &dst, &src, onesided::ReduceOp::Sum)?;
        pe.free(dst)?;
        pe.free(src)
    };
    for schedule in [IN_ORDER, AT_RANDOM] {
        let trace = trace(schedule, program);
        let mut meetings = std::collections::BTreeMap::<usize, Vec<u32>>::new();
        for event in &trace {
            if let EventKind::Entered { first, .. } = event.kind {
                meetings.entry(first).or_default().push(event.pe);
            }
        }
        assert_eq!(meetings.len(), 7, "2 alloc, barrier, reduce, 2 free, finalize: {schedule}");
        for (first, mut pes) in meetings {
            pes.sort_unstable();
            assert_eq!(pes, [0, 1], "{schedule}: {first}");
        }
        let results = trace.iter().filter(|event| named(event) == "delivered").count();
        assert!(results >= 2, "{schedule}: {results}");
        assert_eq!(values(&trace, "delivered"), ["3", "3"], "{schedule}");
    }
}

/// One event as JSON: names of the fields are read by others.
#[test]
fn an_event_has_its_facts_as_fields() {
    let trace = trace(IN_ORDER, with_signal);
    let json = |name: &str| trace.iter().find(|event| named(event) == name).unwrap().to_json();
    let put = json("put_signal");
    assert_eq!((&put["does"], &put["to"], &put["type"]), (&"put".into(), &1.into(), &"f32".into()));
    assert_eq!(put["values"], serde_json::json!(["1.0", "2.5", "-3.0"]));
    assert!(put["column"].as_u64().unwrap() > 0 && put.get("of").is_none(), "{put}");
    let signaled = json("signaled");
    assert_eq!((&signaled["before"], &signaled["values"][0]), (&"0".into(), &"7".into()));
    assert_eq!(signaled["memory"], "buf2+0..8");
    assert!(signaled["of"].is_u64() && signaled.get("piece").is_none(), "{signaled}");
}
