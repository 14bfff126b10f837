//! Straight code: arithmetic, plain accesses to global memory, and jumps. Most instructions are of this kind.
//!
//! The loop is small, so that its variables stay in registers of the processor. It leaves all other operations to
//! [`execute`](super::execute), which returns here afterwards. So an operation that is left to `execute` must have done nothing here.

use super::lanes::{self, Lanes, Row};
use super::thread::Thread;
use super::turn::End;
use super::{Block, Halt};
use crate::alu::fma;
use crate::bytes;
use crate::decode::window;
use crate::module::Place;
use crate::op::{Code, Op, Reg};
use crate::world::{Access, AccessKind, World};

/// Where straight code ends.
pub(super) enum Straight {
    /// Before this operation.
    Before(usize),
    /// Behind a jump, after which threads wait.
    End(End),
}

impl Block {
    /// Threads run from an operation on; `first` is the number of the warp's first thread, `r` are the registers of their frame, behind those
    /// of its callers.
    #[inline(never)]
    pub(super) fn straight<L: Lanes>(
        &mut self,
        world: &mut impl World,
        (first, lanes): (usize, L),
        code: &Code,
        mut pc: usize,
        threads: &mut [Thread],
        (callers, r): (&[Row], &mut [Row]),
    ) -> Result<Straight, Halt> {
        if self.announced {
            return Ok(Straight::Before(pc));
        }
        self.tell(world);
        let ops = &code.ops[..];
        let lead = lanes.lead();
        // Instructions are counted at jumps and at the end: all since this one.
        let mut counted = pc;
        // Of one thread: whether its reads are noted.
        let mut is_active = !L::MANY && self.paces.is_active(first + lead);
        macro_rules! count {
            ($end:expr) => {
                self.steps += ($end - counted) as u64 * lanes.count()
            };
        }
        macro_rules! place {
            () => {
                Place(code.first_place + pc as u32)
            };
        }
        macro_rules! jump {
            ($target:expr) => {{
                let target = $target as usize;
                count!(pc + 1);
                if target <= pc {
                    let quiet = self.paces.round(first, lanes);
                    if quiet != 0 || self.steps > self.asks_at {
                        let jump = (place!(), target as u32);
                        if self.looks_around(world, (first, lanes), quiet, threads, [callers, r], jump)? {
                            lanes.iter().for_each(|lane| threads[lane].frame.pc = target as u32);
                            return Ok(Straight::End(End::Apart));
                        }
                        is_active = !L::MANY && self.paces.is_active(first + lead);
                    }
                }
                pc = target;
                counted = pc;
                continue;
            }};
        }
        // A macro, so that the description of the access is mostly optimized away.
        macro_rules! plain {
            ($bytes:literal, $address:expr, $kind:ident) => {
                Access::plain(first + lead, $address, $bytes, AccessKind::$kind, place!())
            };
        }
        macro_rules! refused {
            ($refusal:expr, $access:expr) => {{
                count!(pc + 1);
                threads[lead].frame.pc = pc as u32;
                return Err(self.refused($refusal, &$access, first + lead));
            }};
        }
        macro_rules! then {
            ($($likely:pat => $done:expr),*) => {
                match ops.get(pc + 1) {
                    $(Some(&$likely) => {
                        pc += 1;
                        $done
                    })*
                    _ => {}
                }
            };
        }
        macro_rules! less {
            ($d:expr, $a:expr, $b:expr) => {
                lanes.binary(r, $d, $a, $b, |a, b| u64::from((a as i32) < b as i32))
            };
        }
        macro_rules! branch {
            ($p:expr, $unless:expr, $target:expr) => {{
                match lanes.condition(&r[usize::from($p)]) {
                    Some(holds) if holds != $unless => jump!($target),
                    Some(_) => {}
                    None => break, // some go there, some here
                }
            }};
        }
        macro_rules! load {
            ($bytes:literal, $d:expr, $a:expr, $offset:expr, $memory:expr) => {{
                let (d, a) = (usize::from($d), usize::from($a));
                if L::MANY {
                    let from = lanes::plus(&r[a], $offset);
                    if !self.load_together(world, first, lanes, $memory, (&from, &mut r[d]), threads, place!()) {
                        break;
                    }
                } else {
                    let address = r[a][lead].wrapping_add_signed($offset.into());
                    if !is_global::<$bytes>(address) || world.stops(&plain!($bytes, address, Load)) {
                        break;
                    }
                    match world.load(&plain!($bytes, address, Load)) {
                        Ok(value) => r[d][lead] = value,
                        Err(refusal) => refused!(refusal, plain!($bytes, address, Load)),
                    }
                    if is_active {
                        threads[lead].spin.read(address, $bytes, &self.changes);
                    }
                }
            }};
        }
        macro_rules! store {
            ($bytes:literal, $s:expr, $a:expr, $offset:expr, $memory:expr) => {{
                let (s, a) = (usize::from($s), usize::from($a));
                if L::MANY {
                    let to = lanes::plus(&r[a], $offset);
                    if !self.store_together(world, first, lanes, $memory, (&to, &r[s]), threads, place!()) {
                        break;
                    }
                } else {
                    let address = r[a][lead].wrapping_add_signed($offset.into());
                    if !is_global::<$bytes>(address) || world.stops(&plain!($bytes, address, Store)) {
                        break;
                    }
                    match world.store(&plain!($bytes, address, Store), r[s][lead]) {
                        Ok(true) => {
                            self.changed(first + lead, address, $bytes);
                            is_active = false;
                        }
                        Ok(false) if is_active => threads[lead].spin.read(address, $bytes, &self.changes),
                        Ok(false) => {}
                        Err(refusal) => refused!(refusal, plain!($bytes, address, Store)),
                    }
                }
            }};
        }
        let all = |r: &mut [Row], d: Reg, value: u64| lanes.each(|lane| r[usize::from(d)][lane] = value);
        loop {
            match ops[pc] {
                Op::Move { d, a } => lanes.unary(r, d, a, |a| a),
                Op::Unary { f, d, a } => lanes.unary(r, d, a, f),
                Op::Binary { f, d, a, b } => lanes.binary(r, d, a, b, f),
                Op::Ternary { f, d, a, b, c } => lanes.ternary(r, d, [a, b, c], f),
                Op::Convert { d, a, how } => {
                    let conversion = &code.conversions[usize::from(how)];
                    lanes.unary(r, d, a, |a| conversion.apply(a));
                }
                Op::Add32 { d, a, b } => {
                    lanes.binary(r, d, a, b, |a, b| u64::from((a as u32).wrapping_add(b as u32)));
                    then!(Op::LessS32 { d, a, b } => {
                        less!(d, a, b);
                        then!(Op::BranchIf { p, unless, target } => branch!(p, unless, target));
                    });
                }
                Op::Add64 { d, a, b } => {
                    lanes.binary(r, d, a, b, u64::wrapping_add);
                    then!(Op::Load4 { d, a, offset, ref memory } => {
                        load!(4, d, a, offset, memory);
                        then!(Op::Load4 { d, a, offset, ref memory } => load!(4, d, a, offset, memory));
                    });
                }
                Op::MulWideS32 { d, a, b } => {
                    lanes.binary(r, d, a, b, |a, b| (i64::from(a as i32) * i64::from(b as i32)).cast_unsigned());
                    then!(Op::Add64 { d, a, b } => lanes.binary(r, d, a, b, u64::wrapping_add));
                }
                Op::FmaF32 { d, a, b, c } => {
                    lanes.ternary_quick(r, d, [a, b, c], fma::quick, fma::exact);
                    then!(Op::Store4 { s, a, offset, ref memory } => store!(4, s, a, offset, memory));
                }
                Op::LessS32 { d, a, b } => {
                    less!(d, a, b);
                    then!(Op::BranchIf { p, unless, target } => branch!(p, unless, target));
                }
                Op::Global { d, variable, offset } => {
                    all(r, d, self.launch.globals[usize::from(variable)].wrapping_add_signed(offset.into()));
                }
                Op::LoadParameter { d, offset, bytes } => {
                    all(r, d, bytes::get(&self.launch.parameters, offset as usize, bytes).unwrap_or(0));
                }
                Op::Load4 { d, a, offset, ref memory } => load!(4, d, a, offset, memory),
                Op::Load8 { d, a, offset, ref memory } => load!(8, d, a, offset, memory),
                Op::Store4 { s, a, offset, ref memory } => store!(4, s, a, offset, memory),
                Op::Store8 { s, a, offset, ref memory } => store!(8, s, a, offset, memory),
                Op::Branch { target } => jump!(target),
                Op::BranchIf { p, unless, target } => branch!(p, unless, target),
                _ => break,
            }
            pc += 1;
        }
        count!(pc);
        Ok(Straight::Before(pc))
    }
}

/// Whether an access lies in global memory, whatever the space of its instruction, and is aligned.
#[inline(always)]
fn is_global<const BYTES: u8>(address: u64) -> bool {
    address & (!(window::SHARED - 1) | (BYTES as u64 - 1)) == 0
}
