//! [`Request`]: what one call of a device function asks for. Arguments are checked here, as the API checks those of hosts.

use onesided::backend::{Against, AllocId, AmoOp, Op, SignalUpdate, Span, TeamId, Values};
use onesided::{Cmp, DType, Members, Predefined, SignalOp, count};

use super::name::{Form, Function, Unit, Verb};
use super::region::Region;
use super::select::{Select, Wanted};
use super::signature::Role;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// An operation of the model. What it returns is the call's result, for functions that have one; a collective returns 0.
    Op(Op, Held),
    /// Nothing is moved and nothing is waited for: the call returns 0 at once.
    Nothing,
    /// Looks at variables, or waits for some of them.
    Select(Select),
    /// A value that is known.
    Query(u64),
    /// Bytes that the call stores in the caller's memory, at these addresses.
    Write(Vec<(u64, Vec<u8>)>),
    /// The address by which the caller reaches a peer's memory, or null.
    Ptr {
        /// The address in the caller's own memory.
        address: u64,
        /// The peer.
        pe: u32,
    },
    /// The multicast address of a team's memory, or null.
    McPtr {
        /// The team.
        team: TeamId,
        /// The address in the caller's own memory.
        address: u64,
    },
    /// About the region of the caller's block.
    Region(Region),
    /// The job ends with this status.
    Exit(i32),
}

/// The values of an operation, held until it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    skip: Vec<bool>,
}

impl Held {
    /// As operations take them.
    pub(crate) fn borrow(&self) -> Values<'_> {
        Values { bytes: &self.bytes, skip: &self.skip }
    }
}

/// What addresses and handles of a kernel mean. Errors say what the address or handle is, and what would be right.
pub(crate) trait Resolve {
    /// The caller's world rank.
    fn my_pe(&self) -> usize;
    /// Number of PEs.
    fn n_pes(&self) -> usize;
    /// These bytes of the caller's own memory, which NVSHMEM can reach: symmetric or registered.
    fn span(&self, address: u64, bytes: usize) -> Result<Span, String>;
    /// Whether these bytes are shared or local memory of the caller.
    fn has_own(&self, address: u64, bytes: usize) -> bool;
    /// Reads the caller's memory, of any kind.
    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String>;
    /// The team of a handle, of which the caller is a member.
    fn team(&self, handle: i32) -> Result<TeamId, String>;
    /// A team's members.
    fn members(&self, team: TeamId) -> Members;
}

impl Function {
    /// What a call with these arguments asks for; `values` are in the order of [`Function::roles`].
    ///
    /// # Errors
    /// A mistake that the caller alone makes: a text that names function and argument.
    pub(crate) fn request(&self, values: &[u64], resolver: &impl Resolve) -> Result<Request, String> {
        let arguments = Arguments { function: self, roles: self.roles(), values, resolver };
        arguments.request().map_err(|why| format!("{}: {why}", self.name))
    }
}

struct Arguments<'a, R> {
    function: &'a Function,
    roles: Vec<Role>,
    values: &'a [u64],
    resolver: &'a R,
}

/// # Requests
impl<R: Resolve> Arguments<'_, R> {
    fn request(&self) -> Result<Request, String> {
        let resolver = self.resolver;
        let op = match self.function.verb {
            Verb::Put { nbi, signal } => return self.put(nbi, signal),
            Verb::Get { nbi } => {
                let pe = self.pe()?;
                let (bytes, dtype) = (self.bytes(1)?, self.unit().dtype);
                if bytes == 0 {
                    return Ok(Request::Nothing);
                }
                let (dst, src) = (self.local(Role::Dest, bytes)?, self.symmetric(Role::Source, bytes)?);
                self.apart(pe, dst, src)?;
                Op::Get { dst, src, dtype, pe, nbi }
            }
            Verb::P => {
                let (pe, dst) = (self.pe()?, self.word(Role::Dest)?);
                Op::P { dst, dtype: self.unit().dtype, value: self.get(Role::Value), pe }
            }
            Verb::G => Op::G { pe: self.pe()?, src: self.word(Role::Source)?, dtype: self.unit().dtype },
            Verb::IPut | Verb::IGet => return self.strided(),
            Verb::Signal => Op::Signal { pe: self.pe()?, update: self.update()? },
            Verb::SignalFetch => Op::SignalFetch { word: self.signal_word()? },
            Verb::SignalWait => Op::Wait {
                vars: self.signal_word()?,
                dtype: DType::U64,
                cmp: self.cmp()?,
                against: Against::One(self.get(Role::CmpValue)),
                signal: true,
            },
            Verb::Wait { form, vector, test } => return self.wait(form, vector, test),
            Verb::Amo { op, fetch, inc } => {
                let word = if op == AmoOp::Fetch { Role::Source } else { Role::Dest };
                let (pe, dst) = (self.pe()?, self.word(word)?);
                let value = if inc { 1 } else { self.find(Role::Value).unwrap_or(0) };
                let cond = self.find(Role::Cond).unwrap_or(0);
                Op::Amo { dst, dtype: self.unit().dtype, op, value, cond, fetch, pe }
            }
            Verb::Fence => Op::Fence,
            Verb::Quiet => Op::Quiet,
            Verb::Flush => Op::Flush,
            Verb::Barrier { all } => Op::Barrier { team: self.team_or_world(all)? },
            Verb::Sync { all } => Op::Sync { team: self.team_or_world(all)? },
            Verb::Broadcast | Verb::Fcollect | Verb::Alltoall | Verb::Reduce(_) | Verb::ReduceScatter(_) => {
                self.collective()?
            }
            Verb::MyPe => return Ok(Request::Query(resolver.my_pe() as u64)),
            Verb::NPes => return Ok(Request::Query(resolver.n_pes() as u64)),
            Verb::TeamMyPe => return Ok(self.in_team(Role::Team, |members| members.position(resolver.my_pe()))),
            Verb::TeamNPes => return Ok(self.in_team(Role::Team, |members| Some(members.len()))),
            Verb::TeamTranslatePe => {
                let index = usize::try_from(self.int(Role::Pe)).ok();
                let world =
                    |members: &Members| index.filter(|&index| index < members.len()).map(|index| members.get(index));
                let Request::Query(found) = self.in_team(Role::Team, |members| world(members)) else {
                    unreachable!("a query")
                };
                let Ok(found) = u32::try_from(found) else { return Ok(Request::Query(found)) };
                return Ok(self.in_team(Role::DestTeam, |members| members.position(found as usize)));
            }
            Verb::Ptr => return Ok(Request::Ptr { address: self.get(Role::Address), pe: self.pe()? }),
            Verb::McPtr => return Ok(Request::McPtr { team: self.team()?, address: self.get(Role::Address) }),
            Verb::Version => return Ok(self.write_numbers(&SPECIFICATION)),
            Verb::VendorVersion => return Ok(self.write_numbers(&LIBRARY)),
            Verb::AskSmem => return Ok(Request::Query(smem(self.int(Role::SmemAmount)))),
            Verb::GiveSmem => return self.give_smem(),
            Verb::ReleaseSmem => return Ok(Request::Nothing),
            Verb::RegionStart | Verb::RegionStop | Verb::RegionIsActive => return self.region().map(Request::Region),
            Verb::GlobalExit => return Ok(Request::Exit(self.int(Role::ExitStatus))),
            Verb::Name => {
                let [major, minor, patch] = LIBRARY;
                let name = format!("NVSHMEM v{major}.{minor}.{patch}\0").into_bytes();
                return Ok(Request::Write(vec![(self.get(Role::Address), name)]));
            }
        };
        Ok(Request::Op(op, Held::default()))
    }

    /// What the library does with shared memory changes no result: transfers are what they are without it.
    fn give_smem(&self) -> Result<Request, String> {
        let (address, bytes) = (self.get(Role::Smem), self.get(Role::SmemSize));
        if address == 0 || bytes == 0 {
            return Ok(Request::Nothing);
        }
        if !address.is_multiple_of(16) {
            return Err("smem is not aligned to 16 bytes".into());
        }
        match self.resolver.has_own(address, usize::try_from(bytes).unwrap_or(usize::MAX)) {
            true => Ok(Request::Nothing),
            false => {
                let bytes = count(bytes, "byte");
                Err(format!("smem is not shared memory of {bytes}; give the launch as much (Grid::shared)"))
            }
        }
    }

    fn region(&self) -> Result<Region, String> {
        Ok(match self.function.verb {
            Verb::RegionStop => Region::Stop { handle: self.get(Role::RegionHandle) },
            Verb::RegionIsActive => {
                Region::IsActive { hints: self.get(Role::RegionHints) as u32, active: self.get(Role::IsActive) }
            }
            _ => {
                let hints = match self.get(Role::RegionAttributes) {
                    0 => Vec::new(),
                    _ => self.read(Role::RegionAttributes, 4)?,
                };
                let hints = hints.iter().rev().fold(0, |hints, &byte| hints << 8 | u32::from(byte));
                Region::Start { handle: self.get(Role::Region), hints }
            }
        })
    }

    fn put(&self, nbi: bool, signal: bool) -> Result<Request, String> {
        let pe = self.pe()?;
        let (bytes, dtype) = (self.bytes(1)?, self.unit().dtype);
        let signal = if signal { Some(self.update()?) } else { None };
        let op = match (bytes, signal) {
            // Without data the addresses mean nothing.
            (0, None) => return Ok(Request::Nothing),
            (0, Some(update)) => Op::Signal { update, pe },
            _ => {
                let (dst, src) = (self.symmetric(Role::Dest, bytes)?, self.local(Role::Source, bytes)?);
                self.apart(pe, dst, src)?;
                if let Some(SignalUpdate { word, .. }) = signal.filter(|update| dst.overlaps(&update.word)) {
                    return Err(format!("the signal {word} lies inside dest {dst}"));
                }
                Op::Put { dst, src, dtype, pe, nbi, signal }
            }
        };
        Ok(Request::Op(op, Held::default()))
    }

    /// Refuses a PE's transfer to itself whose operands share some bytes. With all of them shared it moves nothing.
    fn apart(&self, pe: u32, dst: Span, src: Span) -> Result<(), String> {
        if pe as usize == self.resolver.my_pe() && dst != src && dst.overlaps(&src) {
            return Err(format!("dest {dst} and source {src} overlap, and both are of the calling PE"));
        }
        Ok(())
    }

    fn strided(&self) -> Result<Request, String> {
        let (pe, count, dtype) = (self.pe()?, self.get(Role::Count), self.unit().dtype);
        if count == 0 {
            return Ok(Request::Nothing);
        }
        let small = |role: Role, value: i64| match u32::try_from(value) {
            Ok(value) if value > 0 => Ok(value),
            _ => Err(format!("{} is {value}; it must be at least 1, and at most {}", role.name(), u32::MAX)),
        };
        let dst_stride = small(Role::DestStride, self.get(Role::DestStride) as i64)?;
        let src_stride = small(Role::SourceStride, self.get(Role::SourceStride) as i64)?;
        let count = small(Role::Count, count as i64)?;
        let bytes = |stride: u32| ((count as usize - 1) * stride as usize + 1).saturating_mul(dtype.size());
        let (dst, src) = (bytes(dst_stride), bytes(src_stride));
        let op = if self.function.verb == Verb::IPut {
            let (dst, src) = (self.symmetric(Role::Dest, dst)?, self.local(Role::Source, src)?);
            Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe }
        } else {
            let (dst, src) = (self.local(Role::Dest, dst)?, self.symmetric(Role::Source, src)?);
            Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe }
        };
        Ok(Request::Op(op, Held::default()))
    }

    fn wait(&self, form: Form, vector: bool, test: bool) -> Result<Request, String> {
        let (dtype, cmp) = (self.unit().dtype, self.cmp()?);
        let size = dtype.size();
        let bytes = if form == Form::One { size } else { self.bytes(1)? };
        let count = bytes / size;
        let values = if vector { self.read(Role::CmpValues, bytes)? } else { Vec::new() };
        let skip = match self.find(Role::Status) {
            None | Some(0) => Vec::new(),
            Some(_) => self.read(Role::Status, count * 4)?.chunks_exact(4).map(|flag| flag != [0; 4]).collect(),
        };
        if count == 0 && form == Form::All && !test {
            return Ok(Request::Nothing);
        }
        let vars =
            if count == 0 { Span { alloc: AllocId(0), start: 0, len: 0 } } else { self.symmetric(Role::Vars, bytes)? };
        if !test && matches!(form, Form::One | Form::All) {
            let against = if vector { Against::Each } else { Against::One(self.get(Role::CmpValue)) };
            let op = Op::Wait { vars, dtype, cmp, against, signal: false };
            return Ok(Request::Op(op, Held { bytes: values, skip }));
        }
        let wanted = if vector {
            let held = Values { bytes: &values, skip: &[] };
            Wanted::Each((0..count).map(|index| held.bits(index, size)).collect())
        } else {
            Wanted::One(self.get(Role::CmpValue))
        };
        let indices = self.find(Role::Indices);
        Ok(Request::Select(Select { vars, dtype, cmp, wanted, skip, form, test, indices }))
    }

    fn collective(&self) -> Result<Op, String> {
        let team = self.team()?;
        let members = self.resolver.members(team).len();
        let (of_dst, of_src) = match self.function.verb {
            Verb::Fcollect => (members, 1),
            Verb::Alltoall => (members, members),
            Verb::ReduceScatter(_) => (1, members),
            _ => (1, 1),
        };
        if self.get(Role::Count) == 0 {
            return Err("nelems is 0; a collective moves at least one element".into());
        }
        let dst = self.symmetric(Role::Dest, self.bytes(of_dst)?)?;
        let src = self.symmetric(Role::Source, self.bytes(of_src)?)?;
        let in_place = matches!(self.function.verb, Verb::Reduce(_)) && dst == src;
        if dst.overlaps(&src) && !in_place {
            return Err(format!(
                "dest {dst} and source {src} overlap; only reduce works in place, with both exactly the same"
            ));
        }
        let dtype = self.unit().dtype;
        Ok(match self.function.verb {
            Verb::Broadcast => {
                let root = self.int(Role::Root);
                match u32::try_from(root) {
                    Ok(root) if (root as usize) < members => Op::Broadcast { team, dst, src, dtype, root },
                    _ => return Err(format!("PE_root is {root}; the team has PEs 0 to {}", members - 1)),
                }
            }
            Verb::Fcollect => Op::Fcollect { team, dst, src, dtype },
            Verb::Alltoall => Op::Alltoall { team, dst, src, dtype },
            Verb::Reduce(op) => Op::Reduce { team, dst, src, dtype, op },
            Verb::ReduceScatter(op) => Op::ReduceScatter { team, dst, src, dtype, op },
            _ => unreachable!("a collective that moves data"),
        })
    }

    /// A number about a team; -1 where the caller is no member, or nothing is found.
    fn in_team(&self, role: Role, found: impl Fn(&Members) -> Option<usize>) -> Request {
        let members = self.resolver.team(self.int(role)).map(|team| self.resolver.members(team));
        let number = members.ok().and_then(|members| found(&members));
        Request::Query(number.map_or(u64::from(u32::MAX), |number| number as u64))
    }

    fn write_numbers(&self, numbers: &[i32]) -> Request {
        let write = |(place, number): (usize, &i32)| (self.get(Role::Out(place as u8)), number.to_le_bytes().to_vec());
        Request::Write(numbers.iter().enumerate().map(write).collect())
    }
}

/// The version of the specification, as our `nvshmem.h` has it.
pub(super) const SPECIFICATION: [i32; 2] = [1, 3];
/// The version of the library, likewise.
pub(super) const LIBRARY: [i32; 3] = [3, 8, 0];

/// Bytes of shared memory that this library asks for: for a whole buffer, half of one, and what it notes its transfers in.
fn smem(amount: i32) -> u64 {
    match amount {
        1 => 32 << 10,
        2 => 1136,
        _ => 64 << 10,
    }
}

/// # Arguments
impl<R: Resolve> Arguments<'_, R> {
    fn find(&self, role: Role) -> Option<u64> {
        self.roles.iter().position(|&known| known == role).map(|place| self.values[place])
    }

    fn get(&self, role: Role) -> u64 {
        self.find(role).unwrap_or_else(|| unreachable!("{} has no {}", self.function.name, role.name()))
    }

    fn int(&self, role: Role) -> i32 {
        self.get(role) as u32 as i32
    }

    fn unit(&self) -> Unit {
        self.function.unit.unwrap_or(Unit::of(DType::U64))
    }

    fn pe(&self) -> Result<u32, String> {
        let (pe, n) = (self.int(Role::Pe), self.resolver.n_pes());
        match u32::try_from(pe) {
            Ok(pe) if (pe as usize) < n => Ok(pe),
            _ => Err(format!("pe is {pe}; the job has PEs 0 to {}", n - 1)),
        }
    }

    /// Bytes of `parts` times as many elements as the call says.
    fn bytes(&self, parts: usize) -> Result<usize, String> {
        let count = self.get(Role::Count);
        let bytes =
            usize::try_from(count).ok().and_then(|count| count.checked_mul(self.unit().bytes())?.checked_mul(parts));
        bytes
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| format!("nelems is {count}, more than memory holds; is it negative?"))
    }

    fn cmp(&self) -> Result<Cmp, String> {
        match self.int(Role::Cmp) {
            0 => Ok(Cmp::Eq),
            1 => Ok(Cmp::Ne),
            2 => Ok(Cmp::Gt),
            3 => Ok(Cmp::Le),
            4 => Ok(Cmp::Lt),
            5 => Ok(Cmp::Ge),
            other => Err(format!("cmp is {other}; it must be one of NVSHMEM_CMP_EQ (0) to NVSHMEM_CMP_GE (5)")),
        }
    }

    fn update(&self) -> Result<SignalUpdate, String> {
        let op = match self.int(Role::SignalOp) {
            9 => SignalOp::Set,
            10 => SignalOp::Add,
            other => {
                return Err(format!("sig_op is {other}; it must be NVSHMEM_SIGNAL_SET (9) or NVSHMEM_SIGNAL_ADD (10)"));
            }
        };
        Ok(SignalUpdate { word: self.signal_word()?, value: self.get(Role::SignalValue), op })
    }

    fn team(&self) -> Result<TeamId, String> {
        self.resolver.team(self.int(Role::Team)).map_err(|why| format!("team: {why}"))
    }

    fn team_or_world(&self, all: bool) -> Result<TeamId, String> {
        if all { Ok(Predefined::World.id()) } else { self.team() }
    }

    fn signal_word(&self) -> Result<Span, String> {
        self.aligned(Role::SignalWord, 8)?;
        self.symmetric_bytes(Role::SignalWord, 8)
    }

    /// One element, of which both sides have a copy.
    fn word(&self, role: Role) -> Result<Span, String> {
        self.symmetric(role, self.unit().bytes())
    }

    /// Memory that exists on every PE.
    fn symmetric(&self, role: Role, bytes: usize) -> Result<Span, String> {
        self.aligned(role, self.unit().dtype.size())?;
        self.symmetric_bytes(role, bytes)
    }

    fn symmetric_bytes(&self, role: Role, bytes: usize) -> Result<Span, String> {
        let span = self.span(role, bytes)?;
        if span.alloc.external().is_some() {
            return Err(format!(
                "{} is memory outside the symmetric heap ({span}); the other PEs have none there",
                role.name()
            ));
        }
        Ok(span)
    }

    /// Memory of the caller.
    fn local(&self, role: Role, bytes: usize) -> Result<Span, String> {
        self.aligned(role, self.unit().dtype.size())?;
        self.span(role, bytes)
    }

    fn span(&self, role: Role, bytes: usize) -> Result<Span, String> {
        self.resolver.span(self.get(role), bytes).map_err(|why| format!("{}: {why}", role.name()))
    }

    fn read(&self, role: Role, bytes: usize) -> Result<Vec<u8>, String> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        self.resolver.read(self.get(role), bytes).map_err(|why| format!("{}: {why}", role.name()))
    }

    fn aligned(&self, role: Role, size: usize) -> Result<(), String> {
        let address = self.get(role);
        if address.is_multiple_of(size as u64) {
            return Ok(());
        }
        Err(format!("{} is {address:#x}, not aligned to the {size} bytes of an element", role.name()))
    }
}

#[cfg(test)]
mod tests;
