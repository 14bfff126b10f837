//! What threads do together: barriers, what a warp computes, fences, mbarriers.

use super::builder::Builder;
use super::form::Form;
use crate::block::pending_count;
use crate::error::Error;
use crate::op::{Barrier, FenceKind, MBarrier, Op, Reg, Warp};
use crate::syntax::Operand;
use crate::types::{Scope, Space, Type};
use crate::world::AtomicOp;

impl<'a> Builder<'_, 'a> {
    pub(super) fn sync(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<bool, Error> {
        match opcode {
            "bar" | "barrier" => self.barrier(form, opcode, operands)?,
            "shfl" => self.shuffle(form, operands)?,
            "vote" => self.vote(form, operands)?,
            "match" | "redux" | "elect" => self.together(form, opcode, operands)?,
            "activemask" => {
                let [d] = operands else { return Err(form.unknown()) };
                let (d, _) = self.target(d)?;
                self.emit(Op::Special { d, what: crate::op::Special::Active });
            }
            "membar" | "fence" => self.fence(form, opcode)?,
            "mbarrier" => self.mbarrier(form, operands)?,
            "getctarank" => {
                let [d, a] = operands else { return Err(form.unknown()) };
                form.one_of(&["shared::cluster"]);
                let (a, d) = (self.source(a, form.ty()?)?, self.target(d)?.0);
                self.emit(Op::RankOf { d, a });
            }
            "mapa" => {
                let [d, a, b] = operands else { return Err(form.unknown()) };
                form.space();
                let ty = form.ty()?;
                let (d, a, b) = (self.target(d)?.0, self.source(a, ty)?, self.source(b, Type::U32)?);
                self.emit(Op::InCluster { d, a, b });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn barrier(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        if form.has("warp") {
            let (true, [mask]) = (form.has("sync"), operands) else { return Err(form.unknown()) };
            let mask = self.source(mask, Type::U32)?;
            self.warp(Warp::Sync, [0, 0, mask, mask, mask], mask)?;
            return Ok(());
        }
        if form.has("cluster") {
            let waits = form.need(&["arrive", "wait"])? == "wait";
            let orders: &[&str] = if waits { &["acquire"] } else { &["release", "relaxed"] };
            let releases = form.one_of(orders) != Some("relaxed");
            form.has("aligned");
            if !operands.is_empty() {
                return Err(form.unknown());
            }
            self.emit(Op::Cluster { waits, releases });
            return Ok(());
        }
        form.has("cta");
        // `bar` is `barrier` with the promise that whole warps come.
        let aligned = form.has("aligned") || opcode == "bar";
        let zero = self.constant(0)?;
        let (kind, d, rest) = if form.has("red") {
            let kind = match form.need(&["popc", "and", "or"])? {
                "popc" => Barrier::Count,
                "and" => Barrier::And,
                _ => Barrier::Or,
            };
            let [d, rest @ ..] = operands else { return Err(form.unknown()) };
            (kind, self.target(d)?.0, rest)
        } else if form.has("sync") {
            (Barrier::Sync, self.temporary()?, operands)
        } else if form.has("arrive") {
            (Barrier::Arrive, self.temporary()?, operands)
        } else {
            return Err(form.unknown());
        };
        let reduces = matches!(kind, Barrier::Count | Barrier::And | Barrier::Or);
        let (a, b, p) = match (rest, reduces, kind) {
            ([a], false, Barrier::Sync) => (a, None, None),
            ([a, b], false, _) => (a, Some(b), None),
            ([a, p], true, _) => (a, None, Some(p)),
            ([a, b, p], true, _) => (a, Some(b), Some(p)),
            _ => return Err(form.unknown()),
        };
        let a = self.source(a, Type::U32)?;
        let b = b.map(|b| self.source(b, Type::U32)).transpose()?;
        let p = match p {
            Some(p) => self.source(p, Type::Pred)?,
            None => zero,
        };
        self.emit(Op::Barrier { kind, d, a, b, p, aligned });
        Ok(())
    }

    /// `[d, q, a, b, c]` and the mask.
    pub(super) fn warp(&mut self, kind: Warp, [d, q, a, b, c]: [Reg; 5], mask: Reg) -> Result<(), Error> {
        let scratch = self.temporary()?;
        let or_scratch = |register: Reg, wanted: bool| if wanted { register } else { scratch };
        let d = or_scratch(d, kind != Warp::Sync);
        let q = or_scratch(
            q,
            matches!(kind, Warp::Up | Warp::Down | Warp::Butterfly | Warp::Index | Warp::MatchAll(_) | Warp::Elect),
        );
        self.emit(Op::Warp { kind, d, q, a, b, c, mask });
        Ok(())
    }

    /// A result and perhaps a predicate: `d|p`.
    fn pair(&mut self, operand: &Operand<'a>) -> Result<(Reg, Reg), Error> {
        match *operand {
            Operand::Pair("_", q) => Ok((self.temporary()?, self.target_name(q)?)),
            Operand::Pair(d, q) => Ok((self.target_name(d)?, self.target_name(q)?)),
            _ => Ok((self.target(operand)?.0, self.temporary()?)),
        }
    }

    fn shuffle(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let ([d, a, b, c, mask], true) = (operands, form.has("sync")) else { return Err(form.unknown()) };
        let kind = match form.need(&["up", "down", "bfly", "idx"])? {
            "up" => Warp::Up,
            "down" => Warp::Down,
            "bfly" => Warp::Butterfly,
            _ => Warp::Index,
        };
        if form.ty()? != Type::B32 {
            return Err(form.unknown());
        }
        let (a, b, c) = (self.source(a, Type::B32)?, self.source(b, Type::U32)?, self.source(c, Type::U32)?);
        let mask = self.source(mask, Type::U32)?;
        let (d, q) = self.pair(d)?;
        self.warp(kind, [d, q, a, b, c], mask)
    }

    fn vote(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let ([d, a, mask], true) = (operands, form.has("sync")) else { return Err(form.unknown()) };
        let kind = match (form.need(&["all", "any", "uni", "ballot"])?, form.ty()?) {
            ("all", Type::Pred) => Warp::All,
            ("any", Type::Pred) => Warp::Any,
            ("uni", Type::Pred) => Warp::Uniform,
            ("ballot", Type::B32) => Warp::Ballot,
            _ => return Err(form.unknown()),
        };
        let (a, mask) = (self.source(a, Type::Pred)?, self.source(mask, Type::U32)?);
        let (d, _) = self.target(d)?;
        self.warp(kind, [d, 0, a, a, a], mask)
    }

    fn together(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        if !form.has("sync") {
            return Err(form.unknown());
        }
        if let ("elect", [d, mask]) = (opcode, operands) {
            let mask = self.source(mask, Type::U32)?;
            let (d, q) = self.pair(d)?;
            return self.warp(Warp::Elect, [d, q, mask, mask, mask], mask);
        }
        let [d, a, mask] = operands else { return Err(form.unknown()) };
        let ty = form.ty()?;
        let kind = if opcode == "match" {
            let bytes = ty.bytes() as u8;
            match (form.need(&["any", "all"])?, ty) {
                ("any", Type::B32 | Type::B64) => Warp::MatchAny(bytes),
                (_, Type::B32 | Type::B64) => Warp::MatchAll(bytes),
                _ => return Err(form.unknown()),
            }
        } else {
            match (form.need(&["add", "min", "max", "and", "or", "xor"])?, ty) {
                ("add", Type::U32 | Type::S32) => Warp::Reduce(AtomicOp::Add, ty),
                ("min", Type::U32 | Type::S32) => Warp::Reduce(AtomicOp::Min, ty),
                ("max", Type::U32 | Type::S32) => Warp::Reduce(AtomicOp::Max, ty),
                ("and", Type::B32) => Warp::Reduce(AtomicOp::And, ty),
                ("or", Type::B32) => Warp::Reduce(AtomicOp::Or, ty),
                ("xor", Type::B32) => Warp::Reduce(AtomicOp::Xor, ty),
                _ => return Err(form.unknown()),
            }
        };
        let (a, mask) = (self.source(a, ty)?, self.source(mask, Type::U32)?);
        let (d, q) = self.pair(d)?;
        self.warp(kind, [d, q, a, a, a], mask)
    }

    fn fence(&mut self, form: &mut Form<'a>, opcode: &str) -> Result<(), Error> {
        if opcode == "membar" {
            let scope = match form.need(&["cta", "gl", "sys"])? {
                "cta" => Scope::Cta,
                "gl" => Scope::Gpu,
                _ => Scope::Sys,
            };
            self.emit(Op::Fence { fence: FenceKind::Sequential, scope });
            return Ok(());
        }
        if form.has("proxy") {
            let proxy = form.need(&["async", "alias", "async::generic", "tensormap::generic"])?;
            let is_shared = matches!(form.take_spaces()[..], [] | ["shared::cta" | "shared::cluster"]);
            let is_release = form.one_of(&["acquire", "release"]) == Some("release");
            form.one_of(&["sync_restrict::shared::cta", "sync_restrict::shared::cluster"]);
            form.scope();
            let fence = match proxy {
                "async" if is_shared => FenceKind::AsyncProxy,
                "async::generic" if is_release => FenceKind::AsyncProxy,
                _ => FenceKind::OtherProxy,
            };
            self.emit(Op::Fence { fence, scope: Scope::Cta });
            return Ok(());
        }
        if form.has("mbarrier_init") {
            form.need(&["release"])?;
            form.scope();
            self.emit(Op::Fence { fence: FenceKind::OtherProxy, scope: Scope::Cta });
            return Ok(());
        }
        let order = form.one_of(&["sc", "acq_rel", "acquire", "release"]);
        if let Some(space) = form.behind("sync_restrict::") {
            let is_known =
                matches!((order, space), (Some("acquire"), "shared::cluster") | (Some("release"), "shared::cta"));
            if !is_known || form.scope() != Some(Scope::Cluster) {
                return Err(form.unknown());
            }
            self.emit(Op::Fence { fence: FenceKind::Shared, scope: Scope::Cluster });
            return Ok(());
        }
        let fence = match order {
            Some("sc") => FenceKind::Sequential,
            _ => FenceKind::AcquireRelease,
        };
        let scope = form.scope().ok_or_else(|| form.unknown())?;
        self.emit(Op::Fence { fence, scope });
        Ok(())
    }

    fn mbarrier(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        if form.has("pending_count") {
            let ([d, state], Type::B64) = (operands, form.ty()?) else { return Err(form.unknown()) };
            let (a, d) = (self.source(state, Type::B64)?, self.target(d)?.0);
            self.found.counts_arrivals = true;
            self.emit(Op::Unary { f: pending_count, d, a });
            return Ok(());
        }
        let shared = form.space() == Space::Shared;
        let mut relaxed = form.one_of(&["release", "acquire", "relaxed"]) == Some("relaxed");
        form.scope();
        let zero = self.constant(0)?;
        let one = self.constant(1)?;
        let unused = self.temporary()?;
        let expect = form.has("expect_tx");
        let (kind, d, address, b) = if form.has("init") {
            let [address, count] = operands else { return Err(form.unknown()) };
            (MBarrier::Init, unused, address, self.source(count, Type::U32)?)
        } else if form.has("inval") {
            let [address] = operands else { return Err(form.unknown()) };
            (MBarrier::Invalidate, unused, address, zero)
        } else if form.has("arrive") || form.has("arrive_drop") {
            // Which one it was is gone with the modifier: a drop has it in the name.
            let dropped = form.name().contains("arrive_drop");
            // those that do not end a phase say how often they arrive
            let completes = expect || !form.has("noComplete");
            let counts = operands.len() == 3 || matches!(operands, [Operand::Address { .. }, _]);
            if !completes && (!counts || form.says("shared::cluster")) {
                return Err(form.unknown());
            }
            let kind = match (dropped, expect) {
                (false, false) => MBarrier::Arrive { completes },
                (true, false) => MBarrier::ArriveDrop { completes },
                (false, true) => MBarrier::ArriveExpectTx,
                (true, true) => return Err(form.unknown()),
            };
            match operands {
                [address @ Operand::Address { .. }] if !expect => (kind, unused, address, one),
                [address @ Operand::Address { .. }, count] => (kind, unused, address, self.source(count, Type::U32)?),
                [state, address] if !expect => (kind, self.target(state)?.0, address, one),
                [state, address, count] => (kind, self.target(state)?.0, address, self.source(count, Type::U32)?),
                _ => return Err(form.unknown()),
            }
        } else if form.has("complete_tx") || expect {
            let [address, bytes] = operands else { return Err(form.unknown()) };
            let kind = if expect { MBarrier::ExpectTx } else { MBarrier::CompleteTx };
            relaxed = true; // what they count is ordered by arrivals
            (kind, unused, address, self.source(bytes, Type::U32)?)
        } else if form.has("test_wait") || form.has("try_wait") {
            let parity = form.has("parity");
            let (d, address, state) = match operands {
                // A hint for how long to wait.
                [d, address, state] | [d, address, state, _] => (d, address, state),
                _ => return Err(form.unknown()),
            };
            let state = self.source(state, if parity { Type::U32 } else { Type::B64 })?;
            (MBarrier::Test { parity }, self.target(d)?.0, address, state)
        } else {
            return Err(form.unknown());
        };
        let a = self.address(form, address)?;
        self.emit(Op::MBarrier { kind, d, a, b, shared, relaxed });
        if matches!(kind, MBarrier::Test { .. }) {
            self.note_await();
        }
        Ok(())
    }
}
