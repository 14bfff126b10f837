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

/// The events so far.
#[derive(Default)]
struct Log(Vec<Value>);

impl Log {
    /// Adds an event, and returns its number. `facts` are the fields that only some events have.
    fn add(&mut self, kind: &str, pe: usize, op: &str, text: String, line: usize, facts: Value) -> usize {
        let mut event = json!({
            "step": self.0.len(), "pe": pe, "stream": null, "event": kind, "op": op, "text": text, "at": format!("{FILE}:{line}"),
        });
        event.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.0.push(event);
        self.0.len() - 1
    }

    /// Everybody sends to both neighbours and waits; then what was sent arrives, in an order of its own; then all meet. The data that
    /// arrives behind its signal, and on which PE.
    fn round(&mut self, pes: usize, round: usize) -> (usize, usize) {
        let mut sent = Vec::new();
        let mut waits = Vec::new();
        for pe in 0..pes {
            for (side, other) in [(pe + pes - 1) % pes, (pe + 1) % pes].into_iter().enumerate() {
                let put = format!("put<f64>(buf0+0..4096 on PE {other} <- buf1+0..4096)");
                let put = self.add("op", pe, "put", put, 10, json!({ "does": "put", "to": other }));
                let signal = format!("signal_op(set buf2+{}..{} on PE {other}, {round})", side * 8, side * 8 + 8);
                let signal = self.add("op", pe, "signal_op", signal, 11, json!({ "does": "signal", "to": other }));
                sent.push((pe, other, side, put, signal));
            }
            let wait = format!("signal_wait_until<u64>(buf2+0..8 >= {round})");
            waits.push(self.add("op", pe, "signal_wait_until", wait, 14, json!({ "does": "wait" })));
        }
        sent.sort_by_key(|(pe, other, side, ..)| (pe * 37 + other * 11 + side * 5 + round * 7) % pes);
        let mut signalled = vec![None; pes];
        let mut late = (0, 0);
        for (number, &(pe, other, side, put, signal)) in sent.iter().enumerate() {
            if number != LATE {
                self.delivered(pe, other, put, round);
            }
            let word = format!("buf2+{}..{}", side * 8, side * 8 + 8);
            let text = format!("set {word} on PE {other}, {round}");
            let memory = json!({
                "of": signal, "to": other, "memory": word, "values": [round.to_string()], "before": (round - 1).to_string(),
            });
            signalled[other] = Some(self.add("signaled", pe, "", text, 11, memory));
            if number == LATE {
                late = (self.delivered(pe, other, put, round), other);
            }
        }
        let mut first = None;
        let mut barriers = Vec::new();
        for (pe, (wait, by)) in waits.iter().zip(signalled).enumerate() {
            let end = json!({ "of": wait, "by": by, "memory": "buf2+0..8", "values": [round.to_string()] });
            self.add("returned", pe, "signal_wait_until", "signal_wait_until saw buf2+0..8".into(), 14, end);
            let text = format!("read<f64>(buf0+0..4096 on PE {pe})");
            let read = json!({
                "from": pe, "memory": "buf0+0..4096", "type": "f64", "values": [format!("{round}.5")], "more": 511,
            });
            self.add("op", pe, "read", text, 16, read);
            let barrier = self.add("op", pe, "barrier", "barrier(TEAM_WORLD)".into(), 18, json!({ "does": "barrier" }));
            let first = *first.get_or_insert(barrier + 1);
            let entry = json!({ "of": barrier, "team": "TEAM_WORLD", "number": round, "first": first });
            self.add("entered", pe, "", format!("collective #{round} of TEAM_WORLD"), 18, entry);
            barriers.push(barrier);
        }
        for (pe, barrier) in barriers.into_iter().enumerate() {
            self.add("returned", pe, "barrier", "barrier returned".into(), 18, json!({ "of": barrier }));
        }
        late
    }

    fn delivered(&mut self, pe: usize, other: usize, put: usize, round: usize) -> usize {
        let memory = json!({
            "of": put, "to": other, "memory": "buf0+0..4096", "type": "f64", "values": [format!("{round}.5")], "more": 511,
        });
        self.add("delivered", pe, "", format!("buf0+0..4096 on PE {other}"), 10, memory)
    }
}

/// Which of a round's puts arrives behind its signal.
const LATE: usize = 5;

/// So many PEs, and at least so many events.
pub(crate) fn large(pes: usize, events: usize) -> Finding {
    let mut log = Log::default();
    let mut late = Vec::new();
    while log.0.len() < events {
        late.push(log.round(pes, late.len() + 1));
    }
    let Log(all) = log;
    let race = late[2.min(late.len() - 1)];
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
