//! Decodes one function: its scopes, registers, labels and operations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asks::{self, Asks};
use super::form::Form;
use super::looks::Polls;
use super::{Found, Names, Symbol, Waits, group, known, layout, unused};
use crate::alu::integer;
use crate::error::Error;
use crate::module::Place;
use crate::op::{Code, Op, Reg, Slot, Special};
use crate::source::Location;
use crate::syntax::{Function, Instruction, Operand, Statement, Variable, VariableSpace};
use crate::types::{Type, mask};

/// What a name of the function stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Local {
    Stack(u32),
    Shared(u64),
    Slot(Slot),
    /// A parameter of the kernel.
    Parameter(Slot),
}

/// The names between `{` and `}`.
#[derive(Debug, Default)]
struct ScopeNames<'a> {
    parent: Option<usize>,
    /// First register, type, and for `%r<4>` the count.
    registers: BTreeMap<&'a str, (Reg, Type, Option<u32>)>,
    variables: BTreeMap<&'a str, Local>,
    labels: BTreeMap<&'a str, u32>,
    targets: BTreeMap<&'a str, (Vec<&'a str>, u32)>,
}

/// A jump to a label that may come later.
#[derive(Debug)]
struct Jump<'a> {
    op: usize,
    label: &'a str,
    scope: usize,
    line: u32,
}

pub(super) struct Builder<'m, 'a> {
    pub(super) names: &'m Names<'a>,
    pub(super) code: Code,
    pub(super) found: Found,
    pub(super) is_kernel: bool,
    /// Of calls and atomics, whether something may look at their results.
    pub(super) results_used: unused::Used<'a>,
    /// The names of registers which products of warp groups work on.
    pub(super) held: BTreeSet<&'a str>,
    /// Loads in loops that do nothing else.
    pub(super) polls: Polls<'m>,
    awaits: BTreeSet<usize>,
    /// Atomics that only ask something, and the instructions that these need.
    pub(super) asks: BTreeMap<usize, Asks>,
    pub(super) needed: BTreeMap<usize, &'m Instruction<'a>>,
    /// Instructions so far, the one that is decoded among them.
    pub(super) instructions: usize,
    places: &'m mut Vec<(u32, Option<Arc<Location>>)>,
    scopes: Vec<ScopeNames<'a>>,
    scope: usize,
    constants: BTreeMap<u64, Reg>,
    jumps: Vec<Jump<'a>>,
    tables: Vec<(&'a str, usize, u32)>,
    line: u32,
    location: Option<Arc<Location>>,
}

pub(super) fn function<'m, 'a>(
    names: &'m Names<'a>,
    function: &'m Function<'a>,
    (shared, waits): (u64, Waits<'m>),
    places: &'m mut Vec<(u32, Option<Arc<Location>>)>,
) -> Result<(Code, Found), Error> {
    let first_place = u32::try_from(places.len()).map_err(|_| Error::new(function.line, "the text is too long"))?;
    let mut builder = Builder {
        names,
        code: Code {
            ops: Vec::new(),
            first_place,
            registers: Vec::new(),
            conversions: Vec::new(),
            atomics: Vec::new(),
            matrices: Vec::new(),
            products: Vec::new(),
            tiles: Vec::new(),
            calls: Vec::new(),
            tables: Vec::new(),
            polls: BTreeMap::new(),
            awaits: BTreeSet::new(),
            reasons: Vec::new(),
            local: 0,
            local_align: 16,
            slots: 0,
            parameters: Vec::new(),
            result: None,
        },
        found: Found { shared, narrowest: 4, ..Found::default() },
        is_kernel: function.is_entry,
        results_used: unused::results_used(function),
        held: group::held(function),
        polls: Polls::new(waits.polls),
        awaits: waits.awaits,
        needed: asks::needed(&waits.asks, function),
        asks: waits.asks,
        instructions: 0,
        places,
        scopes: vec![ScopeNames::default()],
        scope: 0,
        constants: BTreeMap::new(),
        jumps: Vec::new(),
        tables: Vec::new(),
        line: function.line,
        location: None,
    };
    builder
        .build(function)
        .map_err(|error| Error { source: error.source.or_else(|| builder.location.as_deref().cloned()), ..error })?;
    Ok((builder.code, builder.found))
}

impl<'a> Builder<'_, 'a> {
    fn build(&mut self, function: &Function<'a>) -> Result<(), Error> {
        self.parameters(function)?;
        for statement in function.body.iter().flatten() {
            self.statement(statement)?;
        }
        self.note_polls();
        self.line = function.line;
        self.emit(Op::Return); // for a body that runs off its end
        self.resolve()
    }

    fn parameters(&mut self, function: &Function<'a>) -> Result<(), Error> {
        let (slots, end) = layout::parameters(&function.parameters)?;
        for (slot, parameter) in slots.iter().zip(&function.parameters) {
            let local = if self.is_kernel { Local::Parameter(*slot) } else { Local::Slot(*slot) };
            self.scopes[0].variables.insert(parameter.name, local);
        }
        if self.is_kernel {
            return Ok(());
        }
        self.code.slots = end;
        self.code.parameters = slots;
        if let Some(result) = &function.result {
            let slot = self.slot(result)?;
            self.scopes[0].variables.insert(result.name, Local::Slot(slot));
            self.code.result = Some(slot);
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement<'a>) -> Result<(), Error> {
        match statement {
            Statement::Loc(index) => {
                let location = self.names.locations.get(*index);
                // Line 0 says that the compiler made the instructions itself: the last line is a better answer.
                if let Some(location) = location.filter(|location| location.line != 0) {
                    self.location = Some(Arc::clone(location));
                }
            }
            Statement::Label(name, line) => {
                let here = self.code.ops.len() as u32;
                if self.scopes[self.scope].labels.insert(name, here).is_some() {
                    return Err(Error::new(*line, format!("the label {name} is defined twice")));
                }
            }
            Statement::Begin => {
                self.scopes.push(ScopeNames { parent: Some(self.scope), ..ScopeNames::default() });
                self.scope = self.scopes.len() - 1;
            }
            Statement::End => self.scope = self.scopes[self.scope].parent.unwrap_or(0),
            Statement::Registers { ty, name, count, line } => self.registers(*ty, name, *count, *line)?,
            Statement::Variable(variable) => self.variable(variable)?,
            Statement::Targets { name, labels, line } => {
                self.scopes[self.scope].targets.insert(name, (labels.clone(), *line));
            }
            Statement::Instruction(instruction) => self.guarded(instruction)?,
            Statement::Mark { reason, line } => self.mark(*reason, *line)?,
        }
        Ok(())
    }

    fn mark(&mut self, reason: Option<&str>, line: u32) -> Result<(), Error> {
        self.line = line;
        let number = reason.map(|reason| {
            let all = &mut self.code.reasons;
            let known = all.iter().position(|known| known == reason);
            known.unwrap_or_else(|| {
                all.push(reason.to_string());
                all.len() - 1
            })
        });
        let number = number.map(u16::try_from).transpose();
        let reason = number.map_err(|_| self.error("more than 65,536 reasons for races in a function"))?;
        self.emit(Op::Mark { reason });
        Ok(())
    }

    fn registers(&mut self, ty: Type, name: &'a str, count: Option<u32>, line: u32) -> Result<(), Error> {
        let first = self.code.registers.len();
        let end = first + count.unwrap_or(1) as usize * usize::from(words(ty));
        if end > usize::from(Reg::MAX) {
            return Err(Error::new(line, "more than 65,535 registers and constants in a function"));
        }
        self.code.registers.resize(end, 0);
        self.scopes[self.scope].registers.insert(name, (first as Reg, ty, count));
        Ok(())
    }

    fn variable(&mut self, variable: &Variable<'a>) -> Result<(), Error> {
        let line = variable.line;
        let local = match variable.space {
            VariableSpace::Param => Local::Slot(self.slot(variable)?),
            VariableSpace::Local => {
                let size = variable.size.ok_or_else(|| Error::new(line, "a local array without a length"))?;
                let (begin, end) = layout::place(self.code.local.into(), variable.align, size, line)?;
                if end > 512 << 10 {
                    return Err(Error::new(line, "more than 512 KiB of local memory in a function"));
                }
                self.code.local = end as u32;
                self.code.local_align = self.code.local_align.max(variable.align);
                Local::Stack(begin as u32)
            }
            _ => {
                let size =
                    variable.size.ok_or_else(|| Error::new(line, "an array without a length inside a function"))?;
                let (begin, end) = layout::place(self.found.shared, variable.align, size, line)?;
                self.found.shared = end;
                self.found.own_shared += size;
                self.found.shared_variables.push(layout::shared(variable, None, begin, Some(end)));
                Local::Shared(begin)
            }
        };
        self.scopes[self.scope].variables.insert(variable.name, local);
        Ok(())
    }

    fn slot(&mut self, variable: &Variable<'a>) -> Result<Slot, Error> {
        let size = variable.size.ok_or_else(|| Error::new(variable.line, format!("{} has no size", variable.name)))?;
        let (begin, end) = layout::place(self.code.slots.into(), variable.align, size, variable.line)?;
        if end > 1 << 20 {
            return Err(Error::new(variable.line, "more than 1 MiB of parameters in a function"));
        }
        self.code.slots = end as u32;
        Ok(Slot { offset: begin as u32, size: size as u32 })
    }

    /// An instruction behind its predicate. A branch has it built in; others are jumped over.
    fn guarded(&mut self, instruction: &Instruction<'a>) -> Result<(), Error> {
        self.line = instruction.line;
        self.instructions += 1;
        let Some((name, negated)) = instruction.guard else { return self.instruction(instruction, None) };
        let (p, ty) = self.register(name).ok_or_else(|| self.error(format!("the predicate {name} is not declared")))?;
        if ty != Type::Pred {
            return Err(self.error(format!("{name} is no predicate")));
        }
        if instruction.opcode == "bra" {
            return self.instruction(instruction, Some((p, negated)));
        }
        let at = self.emit(Op::BranchIf { p, unless: !negated, target: 0 });
        self.instruction(instruction, None)?;
        let end = self.code.ops.len() as u32;
        self.code.ops[at] = Op::BranchIf { p, unless: !negated, target: end };
        Ok(())
    }

    pub(super) fn instruction(
        &mut self,
        instruction: &Instruction<'a>,
        guard: Option<(Reg, bool)>,
    ) -> Result<(), Error> {
        self.note_held(instruction);
        let mut form = Form::of(instruction);
        let operands = &instruction.operands[..];
        if !known::is_known(&form, instruction.opcode) {
            return Err(form.unknown());
        }
        let known = self.control(&mut form, instruction.opcode, operands, guard)?
            || self.arithmetic(&mut form, instruction.opcode, operands)?
            || self.moves(&mut form, instruction.opcode, operands)?
            || self.memory(&mut form, instruction.opcode, operands)?
            || self.sync(&mut form, instruction.opcode, operands)?
            || self.matrix(&mut form, instruction.opcode, operands)?;
        if !known {
            return Err(form.unknown());
        }
        self.check_registers(&form, instruction.opcode, operands)?;
        form.done()
    }

    /// If the test of an mbarrier that was emitted last is all that a loop does, that is a wait.
    pub(super) fn note_await(&mut self) {
        if self.awaits.contains(&(self.instructions - 1)) {
            self.code.awaits.insert(self.code.ops.len() as u32 - 1);
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.line, message)
    }

    /// The place of what is emitted next.
    pub(super) fn next_place(&self) -> Place {
        Place(u32::try_from(self.places.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn emit(&mut self, op: Op) -> usize {
        self.code.ops.push(op);
        self.places.push((self.line, self.location.clone()));
        self.code.ops.len() - 1
    }

    /// Jumps to a label, when all labels are known.
    pub(super) fn jump(&mut self, op: Op, label: &'a str) {
        let op = self.emit(op);
        self.jumps.push(Jump { op, label, scope: self.scope, line: self.line });
    }

    pub(super) fn table(&mut self, name: &'a str) -> Result<u16, Error> {
        self.tables.push((name, self.scope, self.line));
        u16::try_from(self.tables.len() - 1).map_err(|_| self.error("too many indexed branches"))
    }

    fn resolve(&mut self) -> Result<(), Error> {
        for jump in std::mem::take(&mut self.jumps) {
            let to = self.label(jump.label, jump.scope, jump.line)?;
            match &mut self.code.ops[jump.op] {
                Op::Branch { target } | Op::BranchIf { target, .. } => *target = to,
                _ => {}
            }
        }
        for (name, scope, line) in std::mem::take(&mut self.tables) {
            let known = self.outwards(scope).find_map(|scope| self.scopes[scope].targets.get(name));
            let (labels, _) = known.ok_or_else(|| Error::new(line, format!("the table {name} is not defined")))?;
            let targets = labels.iter().map(|label| self.label(label, scope, line)).collect::<Result<_, _>>()?;
            self.code.tables.push(targets);
        }
        Ok(())
    }

    fn label(&self, name: &str, scope: usize, line: u32) -> Result<u32, Error> {
        let found = self.outwards(scope).find_map(|scope| self.scopes[scope].labels.get(name)).copied();
        found.ok_or_else(|| Error::new(line, format!("the label {name} is not defined")))
    }

    /// A scope and those around it.
    fn outwards(&self, scope: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(scope), |&scope| self.scopes[scope].parent)
    }

    pub(super) fn register(&self, name: &str) -> Option<(Reg, Type)> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(name.len() - digits);
        self.outwards(self.scope).find_map(|scope| {
            let registers = &self.scopes[scope].registers;
            if let Some(&(first, ty, None)) = registers.get(name) {
                return Some((first, ty));
            }
            let &(first, ty, count) = registers.get(prefix)?;
            let number: u32 = number.parse().ok().filter(|&number| number < count.unwrap_or(0))?;
            Some((first + number as Reg * words(ty), ty))
        })
    }

    pub(super) fn local(&self, name: &str) -> Option<Local> {
        self.outwards(self.scope).find_map(|scope| self.scopes[scope].variables.get(name)).copied()
    }

    /// A register that always holds this value.
    pub(super) fn constant(&mut self, value: u64) -> Result<Reg, Error> {
        if let Some(&register) = self.constants.get(&value) {
            return Ok(register);
        }
        let register = self.temporary()?;
        self.code.registers[usize::from(register)] = value;
        self.constants.insert(value, register);
        Ok(register)
    }

    pub(super) fn temporary(&mut self) -> Result<Reg, Error> {
        let register = Reg::try_from(self.code.registers.len()).ok().filter(|&register| register < Reg::MAX);
        let register = register.ok_or_else(|| self.error("more than 65,535 registers and constants in a function"))?;
        self.code.registers.push(0);
        Ok(register)
    }

    /// The register that an instruction writes, and its type; `_` takes a result that nobody wants.
    pub(super) fn target(&mut self, operand: &Operand<'a>) -> Result<(Reg, Type), Error> {
        match *operand {
            Operand::Name { name: "_", .. } => Ok((self.temporary()?, Type::B64)),
            Operand::Name { name, offset: 0 } => match self.register(name) {
                Some((_, Type::B128)) => Err(self.is_wide(name)),
                found => found.ok_or_else(|| self.error(format!("the register {name} is not declared"))),
            },
            _ => Err(self.error("expected a register to write")),
        }
    }

    fn is_wide(&self, name: &str) -> Error {
        self.error(format!("{name} has 128 bits, and is known in moves, loads, stores and atomics of .b128 only"))
    }

    pub(super) fn target_name(&mut self, name: &'a str) -> Result<Reg, Error> {
        Ok(self.target(&Operand::Name { name, offset: 0 })?.0)
    }

    /// A register with the operand's value: a number, an address, a special register become one.
    pub(super) fn source(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Reg, Error> {
        match *operand {
            Operand::Bits(bits) if ty.is_float() && bits != 0 && matches!(ty, Type::F32 | Type::F64) => {
                let value = crate::lexer::Float::Double(bits.cast_signed() as f64);
                let bits = layout::float_bits(value, ty).unwrap_or(0);
                self.constant(bits)
            }
            Operand::Bits(bits) => self.constant(bits & ty.mask()),
            Operand::Float(value) => {
                let bits = layout::float_bits(value, ty)
                    .ok_or_else(|| self.error("a floating-point number where an integer is expected"))?;
                self.constant(bits)
            }
            Operand::Not(name) => {
                let (a, ty) =
                    self.register(name).ok_or_else(|| self.error(format!("the predicate {name} is not declared")))?;
                let d = self.temporary()?;
                let f = integer::unary("not", ty).ok_or_else(|| self.error(format!("!{name} is no predicate")))?;
                self.emit(Op::Unary { f, d, a });
                Ok(d)
            }
            Operand::Name { name, offset } => self.named(name, offset),
            _ => Err(self.error("expected a register, a number or an address")),
        }
    }

    fn named(&mut self, name: &'a str, offset: i64) -> Result<Reg, Error> {
        if let Some((register, ty)) = self.register(name) {
            return if ty == Type::B128 {
                Err(self.is_wide(name))
            } else if offset == 0 {
                Ok(register)
            } else {
                Err(self.error(format!("{name} is a register: nothing can be added to it here")))
            };
        }
        if name == "WARP_SZ" {
            return self.constant(32);
        }
        if let Some(what) = special(name) {
            self.found.grid_sync |= matches!(what, Special::Environment(1 | 2));
            let d = self.temporary()?;
            self.emit(Op::Special { d, what });
            return Ok(d);
        }
        if name.starts_with('%') {
            return Err(self
                .error(format!("the register {name} is neither declared nor a special register that is known here")));
        }
        self.address_of(name, offset)
    }

    /// A register with the address of a variable, in the variable's own space.
    pub(super) fn address_of(&mut self, name: &'a str, offset: i64) -> Result<Reg, Error> {
        if let (None, Some(&Symbol::Shared(at))) = (self.local(name), self.names.symbols.get(name)) {
            self.found.named_shared.insert(at);
        }
        let fixed = match (self.local(name), self.names.symbols.get(name)) {
            (Some(Local::Shared(at)), _) | (None, Some(&(Symbol::Shared(at) | Symbol::Const(at)))) => at,
            (Some(Local::Parameter(slot)), _) => slot.offset.into(),
            (Some(Local::Stack(at)), _) => {
                let offset = i64::from(at).checked_add(offset).and_then(|at| u32::try_from(at).ok());
                let offset = offset.ok_or_else(|| self.error(format!("an address outside of {name}")))?;
                let d = self.temporary()?;
                self.emit(Op::Local { d, offset });
                return Ok(d);
            }
            (Some(Local::Slot(_)), _) => {
                return Err(self.error(format!("the address of {name}, a parameter of a call, is not known here")));
            }
            (None, Some(&Symbol::Global(variable))) => {
                let offset = i32::try_from(offset).map_err(|_| self.error("an offset beyond 2 GiB"))?;
                let d = self.temporary()?;
                self.emit(Op::Global { d, variable, offset });
                return Ok(d);
            }
            (None, Some(Symbol::SharedDynamic)) => {
                let d = self.temporary()?;
                self.emit(Op::Special { d, what: Special::TotalShared });
                let size = self.temporary()?;
                self.emit(Op::Special { d: size, what: Special::DynamicShared });
                let f = integer::binary("sub", Type::U64).ok_or_else(|| self.error("no subtraction"))?;
                self.emit(Op::Binary { f, d, a: d, b: size });
                if offset != 0 {
                    let b = self.constant(offset.cast_unsigned())?;
                    self.emit(Op::Add64 { d, a: d, b });
                }
                return Ok(d);
            }
            (None, None) if self.names.callees.contains_key(name) => {
                return Err(
                    self.error(format!("the address of the function {name}: indirect calls are not known here"))
                );
            }
            (None, None) => return Err(self.error(format!("{name} is not declared"))),
        };
        self.constant(fixed.wrapping_add_signed(offset))
    }

    /// Sign-extends or truncates what an instruction of type `ty` left in a register of another width.
    pub(super) fn fit(&mut self, d: Reg, ty: Type, register: Type) {
        let narrow = ty.is_signed() && ty.bits() < register.bits();
        if let Some(f) = integer::sign_extend(ty.bits(), register.bits().min(64)).filter(|_| narrow) {
            self.emit(Op::Unary { f, d, a: d });
        }
    }

    pub(super) fn offset(&mut self, base: Reg, offset: i64) -> Result<(Reg, i32), Error> {
        if let Ok(offset) = i32::try_from(offset) {
            return Ok((base, offset));
        }
        let (d, b) = (self.temporary()?, self.constant(offset.cast_unsigned() & mask(64))?);
        self.emit(Op::Add64 { d, a: base, b });
        Ok((d, 0))
    }
}

/// How many numbered registers one of a type is.
fn words(ty: Type) -> Reg {
    if ty == Type::B128 { 2 } else { 1 }
}

fn special(name: &str) -> Option<Special> {
    let name = name.strip_prefix('%')?;
    let axis = |rest: &str| match rest {
        ".x" => Some(0),
        ".y" => Some(1),
        ".z" => Some(2),
        _ => None,
    };
    for (prefix, make) in [
        ("tid", Special::Thread as fn(u8) -> Special),
        ("ntid", Special::BlockSize),
        ("ctaid", Special::Block),
        ("nctaid", Special::GridSize),
        ("clusterid", Special::Cluster),
        ("nclusterid", Special::Clusters),
        ("cluster_ctaid", Special::InCluster),
        ("cluster_nctaid", Special::ClusterSize),
    ] {
        if let Some(axis) = name.strip_prefix(prefix).and_then(axis) {
            return Some(make(axis));
        }
    }
    Some(match name {
        "laneid" => Special::Lane,
        "warpid" => Special::Warp,
        "nwarpid" => Special::Warps,
        "lanemask_eq" => Special::LaneMask,
        "lanemask_lt" => Special::LanesBelow,
        "lanemask_le" => Special::LanesUpTo,
        "lanemask_gt" => Special::LanesAbove,
        "lanemask_ge" => Special::LanesFrom,
        "dynamic_smem_size" => Special::DynamicShared,
        "total_smem_size" | "aggr_smem_size" => Special::TotalShared,
        "clock" | "clock64" | "globaltimer" | "globaltimer_lo" => Special::Clock,
        "clock_hi" | "globaltimer_hi" | "smid" | "gridid" => Special::Constant(0),
        "cluster_ctarank" => Special::Rank,
        "cluster_nctarank" => Special::Ranks,
        "is_explicit_cluster" => Special::HasClusters,
        // Nothing of shared memory is reserved.
        "reserved_smem_offset_begin" | "reserved_smem_offset_end" | "reserved_smem_offset_cap" => Special::Constant(0),
        "reserved_smem_offset_0" | "reserved_smem_offset_1" => Special::Constant(0),
        "nsmid" => Special::Constant(1),
        _ => {
            let number = name.strip_prefix("envreg")?.parse().ok().filter(|&number| number < 32)?;
            Special::Environment(number)
        }
    })
}
