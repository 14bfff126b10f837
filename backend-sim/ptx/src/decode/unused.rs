//! Calls and atomics whose result nobody looks at. A compiler loads every result into a register: often nothing reads that.

use std::collections::BTreeMap;

use crate::syntax::{Function, Instruction, Operand, Statement};

/// How often each name occurs.
pub(super) type Times<'a> = BTreeMap<&'a str, usize>;

/// What stands between `{` and `}`.
#[derive(Default)]
struct Scope<'a> {
    names: Times<'a>,
    /// The variables that it declares.
    variables: Vec<&'a str>,
    /// Calls, by their numbers in the function, and the variables of their results.
    calls: Vec<(usize, &'a str)>,
    /// Loads from variables: which, and the register.
    loads: Vec<(&'a str, &'a str)>,
}

/// What of a function's results something may look at.
pub(super) struct Used<'a> {
    /// For each call, whether it is its result.
    calls: Vec<bool>,
    names: Times<'a>,
}

impl Used<'_> {
    /// Whether something may look at the result of a call, by its number in the function.
    pub(super) fn result_of_call(&self, call: u16) -> bool {
        self.calls.get(usize::from(call)).is_none_or(|&is_used| is_used)
    }

    /// Whether something may look at the register of this name, which one instruction writes.
    pub(super) fn register(&self, name: &str) -> bool {
        name != "_" && self.names.get(name).is_none_or(|&times| times > 1)
    }
}

/// How often a function's instructions have each name.
pub(super) fn names_of<'a>(function: &Function<'a>) -> Times<'a> {
    let mut names = Times::new();
    for statement in function.body.iter().flatten() {
        if let Statement::Instruction(instruction) = statement {
            count(instruction, &mut names);
        }
    }
    names
}

/// Which results of a function something may look at.
pub(super) fn results_used<'a>(function: &Function<'a>) -> Used<'a> {
    let names = names_of(function);
    let mut used = Vec::new();
    let mut scopes = vec![Scope::default()];
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Begin => scopes.push(Scope::default()),
            Statement::End => {
                if let Some(scope) = scopes.pop() {
                    scope.end(&names, &mut used);
                    if let Some(parent) = scopes.last_mut() {
                        scope
                            .names
                            .into_iter()
                            .for_each(|(name, times)| *parent.names.entry(name).or_default() += times);
                    }
                }
            }
            Statement::Instruction(instruction) => {
                if let Some(scope) = scopes.last_mut() {
                    scope.instruction(instruction, &mut used);
                }
            }
            Statement::Variable(variable) => {
                if let Some(scope) = scopes.last_mut() {
                    scope.variables.push(variable.name);
                }
            }
            _ => {}
        }
    }
    scopes.iter().for_each(|scope| scope.end(&names, &mut used));
    Used { calls: used, names }
}

impl<'a> Scope<'a> {
    fn instruction(&mut self, instruction: &Instruction<'a>, used: &mut Vec<bool>) {
        count(instruction, &mut self.names);
        match (instruction.opcode, &instruction.operands[..]) {
            ("call", operands) => {
                if let [Operand::List(result), Operand::Name { .. }, ..] = operands
                    && let [Operand::Name { name, .. }] = result[..]
                {
                    self.calls.push((used.len(), name));
                }
                used.push(true);
            }
            ("ld", [Operand::Name { name, .. }, Operand::Address { base: Some(base), .. }]) => {
                self.loads.push((base, name))
            }
            _ => {}
        }
    }

    /// A result is looked at if its variable is of an outer scope, or is named by anything but its call and loads of whole registers, or
    /// one of these registers is named again.
    fn end(&self, names: &Times<'_>, used: &mut [bool]) {
        for &(call, result) in &self.calls {
            let loads = || self.loads.iter().filter(|(from, _)| *from == result);
            used[call] = !self.variables.contains(&result)
                || self.names[result] > 1 + loads().count()
                || loads().any(|(_, register)| names[register] > 1);
        }
    }
}

pub(super) fn count<'a>(instruction: &Instruction<'a>, names: &mut Times<'a>) {
    if let Some((guard, _)) = instruction.guard {
        *names.entry(guard).or_default() += 1;
    }
    instruction.operands.iter().for_each(|operand| count_names(operand, names));
}

pub(super) fn count_names<'a>(operand: &Operand<'a>, names: &mut Times<'a>) {
    let mut one = |name: &'a str| *names.entry(name).or_default() += 1;
    match operand {
        Operand::Name { name, .. } | Operand::Part { name, .. } | Operand::Not(name) => one(name),
        Operand::Pair(first, second) => {
            one(first);
            one(second);
        }
        Operand::Address { base, .. } => base.iter().copied().for_each(one),
        Operand::Tile { base, corner, .. } => {
            base.iter().copied().for_each(one);
            corner.iter().for_each(|operand| count_names(operand, names));
        }
        Operand::Vector(operands) | Operand::List(operands) => {
            operands.iter().for_each(|operand| count_names(operand, names));
        }
        Operand::Bits(_) | Operand::Float(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the calls of a kernel with this body.
    fn used(body: &str) -> Vec<bool> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) f\n();\n.visible .entry k()\n{{\n.reg .b32 %r<9>;\n{body}\nret;\n}}\n"
        );
        let text = crate::parser::parse(&text).unwrap();
        results_used(text.functions.iter().find(|function| function.is_entry).unwrap()).calls
    }

    fn call(register: &str) -> String {
        format!("{{ .param .b32 retval0; call (retval0), f, (); ld.param.b32 {register}, [retval0+0]; }}\n")
    }

    #[test]
    fn a_result_is_used_if_its_register_is_named_again() {
        let both = [call("%r1"), call("%r2"), "add.s32 %r3, %r2, 1;".into()].concat();
        assert_eq!(used(&both), [false, true]);
        let address = [call("%r1"), "st.shared.b32 [%r1], %r3;".into()].concat();
        assert_eq!(used(&address), [true]);
        let in_a_loop = ["add.s32 %r3, %r1, 1;", &call("%r1")].concat();
        assert_eq!(used(&in_a_loop), [true], "before, in the text");
    }

    #[test]
    fn a_result_is_used_if_its_variable_is_named_by_something_else() {
        let passed_on = "{ .param .b32 retval0; call (retval0), f, (); { ld.param.b32 %r1, [retval0]; } }";
        assert_eq!(used(passed_on), [true], "in a scope of its own");
        assert_eq!(used("{ .param .b32 retval0; call (retval0), f, (); }"), [false]);
        assert_eq!(
            used("{ .param .b32 retval0; call (retval0), f, (); ld.param.v2.b16 {%r1, %r2}, [retval0]; }"),
            [true]
        );
        let outside = "{ .param .b32 retval0; { call (retval0), f, (); } ld.param.b32 %r1, [retval0]; st.shared.b32 [%r1], %r1; }";
        assert_eq!(used(outside), [true], "declared in an outer scope");
    }

    #[test]
    fn a_result_that_a_function_returns_is_used() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) f\n();\n\
                    .func (.param .b32 retval0) g()\n{\ncall (retval0), f, ();\nret;\n}\n";
        let text = crate::parser::parse(text).unwrap();
        let function = text.functions.iter().find(|function| function.name == "g").unwrap();
        assert_eq!(results_used(function).calls, [true]);
    }

    #[test]
    fn a_register_is_used_if_it_is_named_twice() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<2>;\n\
                    atom.global.add.u32 %r1, [%rd1], 1;\natom.global.add.u32 %r2, [%rd1], %r3;\nmov.u32 %r4, %r2;\nret;\n}\n";
        let text = crate::parser::parse(text).unwrap();
        let used = results_used(&text.functions[0]);
        assert_eq!(["%r1", "%r2", "_", "%r8"].map(|name| used.register(name)), [false, true, false, true]);
    }
}
