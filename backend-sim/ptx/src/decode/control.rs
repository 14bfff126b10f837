//! Branches, calls, and what ends a thread.

use super::builder::{Builder, Local};
use super::form::Form;
use crate::error::Error;
use crate::op::{CallSite, Callee, Op, Reg, Slot};
use crate::syntax::Operand;
use crate::types::Type;

impl<'a> Builder<'_, 'a> {
    pub(super) fn control(
        &mut self,
        form: &mut Form<'a>,
        opcode: &str,
        operands: &[Operand<'a>],
        guard: Option<(Reg, bool)>,
    ) -> Result<bool, Error> {
        match (opcode, operands) {
            ("bra", [Operand::Name { name, offset: 0 }]) => {
                form.has("uni");
                match guard {
                    Some((p, unless)) => self.jump(Op::BranchIf { p, unless, target: 0 }, name),
                    None => self.jump(Op::Branch { target: 0 }, name),
                }
            }
            ("brx", [index, Operand::Name { name, offset: 0 }]) if form.has("idx") => {
                form.has("uni");
                let a = self.source(index, Type::U32)?;
                let table = self.table(name)?;
                self.emit(Op::BranchTable { a, table });
            }
            ("call", operands) => {
                form.has("uni");
                self.call(form, operands)?;
            }
            ("ret", []) => {
                form.has("uni");
                self.emit(Op::Return);
            }
            ("exit", []) => {
                self.emit(Op::Exit);
            }
            ("trap" | "brkpt", []) => {
                self.emit(Op::Trap);
            }
            ("nanosleep", [time]) => {
                self.source(time, form.ty()?)?;
                self.emit(Op::Sleep);
            }
            // Events of a profiler.
            ("pmevent", [_]) => {
                form.has("mask");
            }
            // Blocks do not start before the ones that they depend on have ended.
            ("griddepcontrol", []) => {
                form.need(&["launch_dependents", "wait"])?;
            }
            ("setmaxnreg", [_]) => {
                form.need(&["inc", "dec"])?;
                form.has("sync");
                form.has("aligned");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `call (result), function, (parameters)`; results and parameters are slots.
    fn call(&mut self, form: &Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let (result, name, arguments) = match operands {
            [Operand::List(result), Operand::Name { name, .. }, Operand::List(arguments)] => {
                (&result[..], name, &arguments[..])
            }
            [Operand::List(result), Operand::Name { name, .. }] => (&result[..], name, &[][..]),
            [Operand::Name { name, .. }, Operand::List(arguments)] => (&[][..], name, &arguments[..]),
            [Operand::Name { name, .. }] => (&[][..], name, &[][..]),
            _ => return Err(form.error("a call of this form is not known here (an indirect one?)")),
        };
        if self.register(name).is_some() {
            return Err(form.error("an indirect call is not known here"));
        }
        let callee =
            *self.names.callees.get(name).ok_or_else(|| form.error(format!("the function {name} is not declared")))?;
        let (parameter_sizes, result_size) = self.names.signatures.get(name).cloned().unwrap_or_default();
        let arguments = arguments.iter().map(|argument| self.slot_of(form, argument)).collect::<Result<Vec<_>, _>>()?;
        let result = result.first().map(|result| self.slot_of(form, result)).transpose()?;
        let same = arguments.len() == parameter_sizes.len()
            && arguments.iter().zip(&parameter_sizes).all(|(slot, &size)| u64::from(slot.size) == size)
            && result.is_none_or(|slot| u64::from(slot.size) == result_size);
        if !same {
            return Err(
                form.error(format!("the arguments or the result of this call do not fit the declaration of {name}"))
            );
        }
        match callee {
            Callee::Function(index) => _ = self.found.calls.insert(index),
            Callee::External(index) => {
                let place = self.next_place();
                self.found.externals.entry(index).or_insert(place);
            }
            Callee::Print if arguments.len() != 2 => return Err(form.error("vprintf has two parameters")),
            Callee::AssertFail if arguments.len() != 5 => return Err(form.error("__assertfail has five parameters")),
            Callee::Print | Callee::AssertFail => {}
        }
        if matches!(callee, Callee::Print | Callee::AssertFail) && arguments.iter().any(|slot| slot.size > 8) {
            return Err(form.error(format!("the parameters of {name} are words of at most 8 bytes")));
        }
        let call =
            u16::try_from(self.code.calls.len()).map_err(|_| form.error("more than 65,535 calls in a function"))?;
        let is_used = self.results_used.result_of_call(call);
        let all = Slot::around(&arguments);
        self.code.calls.push(CallSite { callee, arguments, all, result, is_used });
        self.emit(Op::Call { call });
        self.note_poll(0)
    }

    fn slot_of(&self, form: &Form<'a>, operand: &Operand<'a>) -> Result<Slot, Error> {
        match *operand {
            Operand::Name { name, offset: 0 } => {
                match self.local(name) {
                    Some(Local::Slot(slot)) => Ok(slot),
                    _ => Err(form
                        .error(format!("{name} is no .param variable: other arguments of calls are not known here"))),
                }
            }
            _ => Err(form.error("the arguments of a call are .param variables")),
        }
    }
}
