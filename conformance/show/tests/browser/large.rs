//! A large finding: every PE sends to its neighbours, round after round, and then everybody meets. One put is not ordered.

use onesided_show::Finding;
use serde_json::{Value, json};

const FILE: &str = "src/exchange.rs";
const SOURCE: &str = "\
use onesided::{Backend, Cmp, Pe, Result, SignalOp};

/// Neighbours exchange halves of an array, round after round.
pub fn exchange(pe: &Pe<impl Backend>, rounds: u64) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (halo, mine) = (pe.alloc_zeroed::<f64>(512)?, pe.alloc::<f64>(512)?);
    let flags = pe.alloc_zeroed::<u64>(2)?;
    for round in 1..=rounds {
        for (side, other) in [(me + n - 1) % n, (me + 1) % n].into_iter().enumerate() {
            pe.host().put(&halo, &mine, other)?;
            pe.host().signal_op(flags.signal(side), round, SignalOp::Set, other)?;
        }
        for side in 0..2 {
            pe.host().signal_wait_until(flags.signal(side), Cmp::Ge, round)?;
        }
        let seen = pe.read(&halo)?;
        step(&seen);
        pe.host().barrier_all()?;
    }
    Ok(())
}
";

/// So many PEs, and at least so many events.
pub(crate) fn large(pes: usize, events: usize) -> Finding {
    let mut all: Vec<Value> = Vec::new();
    let mut step = 0;
    let mut event = |kind: &str, pe: usize, op: &str, text: String, line: usize, more: Value| {
        step += 1;
        let mut event = json!({
            "step": step, "pe": pe, "stream": null, "event": kind, "op": op, "text": text, "at": format!("{FILE}:{line}"),
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.push(event);
        all.len() - 1
    };
    let mut round = 0;
    let mut race = (0, 0);
    let mut made = 0;
    while made < events {
        round += 1;
        let mut sent = Vec::new();
        let mut waits = Vec::new();
        for pe in 0..pes {
            for (side, other) in [(pe + pes - 1) % pes, (pe + 1) % pes].into_iter().enumerate() {
                let put = format!("put<f64>(buf0+0..4096 on PE {other} <- buf1+0..4096)");
                let put = event("op", pe, "put", put, 10, json!({ "does": "put", "to": other }));
                let signal = format!("signal_op(set buf2+{}..{} on PE {other}, {round})", side * 8, side * 8 + 8);
                let signal = event("op", pe, "signal_op", signal, 11, json!({ "does": "signal", "to": other }));
                sent.push((pe, other, side, put, signal));
            }
            let wait = format!("signal_wait_until<u64>(buf2+0..8 >= {round})");
            waits.push(event("op", pe, "signal_wait_until", wait, 14, json!({ "does": "wait" })));
        }
        // deliveries come in an order of their own, the same each time
        sent.sort_by_key(|(pe, other, side, ..)| (pe * 37 + other * 11 + side * 5 + round * 7) % pes);
        let mut signalled = vec![None; pes];
        for (number, &(pe, other, side, put, signal)) in sent.iter().enumerate() {
            let late = number == 5;
            let deliver = |event: &mut dyn FnMut(&str, usize, &str, String, usize, Value) -> usize| {
                let memory = json!({ "of": put, "to": other, "memory": "buf0+0..4096", "type": "f64", "values": [format!("{round}.5")], "more": 511 });
                event("delivered", pe, "", format!("buf0+0..4096 on PE {other}"), 10, memory)
            };
            if !late {
                deliver(&mut event);
            }
            let memory = json!({ "of": signal, "to": other, "memory": format!("buf2+{}..{}", side * 8, side * 8 + 8), "values": [round.to_string()], "before": (round - 1).to_string() });
            signalled[other] =
                Some(event("signaled", pe, "", format!("set buf2+{} on PE {other}, {round}", side * 8), 11, memory));
            if late {
                let arrived = deliver(&mut event);
                if round == 3 {
                    race = (arrived, other);
                }
            }
        }
        let mut first = None;
        let mut barriers = Vec::new();
        for (pe, (wait, by)) in waits.iter().zip(signalled).enumerate() {
            let end = json!({ "of": wait, "by": by, "memory": "buf2+0..8", "values": [round.to_string()] });
            event("returned", pe, "signal_wait_until", "signal_wait_until saw buf2+0..8".into(), 14, end);
            let text = format!("read<f64>(buf0+0..4096 on PE {pe})");
            let read = json!({ "from": pe, "memory": "buf0+0..4096", "type": "f64", "values": [format!("{round}.5")], "more": 511 });
            event("op", pe, "read", text, 16, read);
            let barrier = event("op", pe, "barrier", "barrier(TEAM_WORLD)".into(), 18, json!({ "does": "barrier" }));
            let number = barrier + 1;
            let entry =
                json!({ "of": barrier, "team": "TEAM_WORLD", "number": round, "first": first.unwrap_or(number) });
            event("entered", pe, "", format!("collective #{round} of TEAM_WORLD"), 18, entry);
            first.get_or_insert(number);
            barriers.push(barrier);
        }
        for (pe, barrier) in barriers.into_iter().enumerate() {
            made = event("returned", pe, "barrier", "barrier returned".into(), 18, json!({ "of": barrier }));
        }
    }
    let (arrived, pe) = race;
    let put = all[arrived]["of"].as_u64().unwrap() as usize;
    let read =
        all.iter().enumerate().skip(arrived).find(|(_, event)| event["pe"] == pe && event["op"] == "read").unwrap().1;
    let side = |event: &Value, call: &str, part: &str, how: &str| json!({ "pe": event["pe"], "stream": null, "call": call, "at": event["at"], "part": part, "how": how, "step": event["step"] });
    let finding = json!({
        "schema": "onesided-finding/1", "program": "exchange", "checks": "it has its neighbours' halves", "arguments": [],
        "cluster": { "pes": pes, "nodes": 1, "gpus": null, "pieces": 4 }, "profile": "spec", "schedule": "os2.64x1.spec.p4.r1.none",
        "replay": "exchange --replay os2.64x1.spec.p4.r1.none",
        "verdict": { "outcome": "data race", "text": format!("data race on buf0+0..4096 of PE {pe}"), "pe": null, "at": null },
        "races": [{
            "first": side(&all[put], "put", "delivery", "write"), "second": side(read, "read", "itself", "read"),
            "pe": pe, "memory": "buf0+0..4096", "made_at": format!("{FILE}:6"), "times": 40,
            "missing": {
                "text": format!("a fence between {FILE}:10 and {FILE}:11, or one put_signal"), "call": "fence",
                "after": format!("{FILE}:10"), "before": format!("{FILE}:11"),
            },
        }],
        "agents": [], "undelivered": [], "events": all, "sources": [{ "file": FILE, "text": SOURCE }],
    });
    Finding::read("large", &finding.to_string()).unwrap()
}
