//! [`Table`]: what bindgen wrote, read again as types and values.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{Fields, GenericArgument, Item, PathArguments, ReturnType, Type};

use crate::names::Reduction;

/// The constants that differ between versions for a reason: the predefined teams became more.
const MORE_TEAMS: [&str; 3] = ["NVSHMEM_TEAMS_MIN", "NVSHMEM_TEAM_MC_SHARED", "NVSHMEM_TEAM_MC_SHARED_INDEX"];

/// A function's types; the names of its parameters do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    inputs: Vec<String>,
    output: String,
}

/// The functions and constants of one version.
#[derive(Debug, Default)]
pub(crate) struct Table {
    functions: BTreeMap<String, Signature>,
    constants: BTreeMap<String, String>,
}

impl Table {
    /// Reads the text of a table.
    pub(crate) fn read(text: &str) -> Result<Table, String> {
        let file = syn::parse_file(text).map_err(|error| format!("bindgen wrote what is no Rust: {error}"))?;
        let mut table = Table::default();
        for item in file.items {
            match item {
                Item::Const(constant) if constant.ident != "_" => {
                    table.constants.insert(constant.ident.to_string(), words(&constant.expr));
                }
                Item::Struct(structure) if structure.ident == "Functions" => {
                    let Fields::Named(fields) = structure.fields else { continue };
                    for field in fields.named {
                        let (Some(name), Some(signature)) = (field.ident, signature(&field.ty)) else { continue };
                        table.functions.insert(name.to_string(), signature);
                    }
                }
                _ => {}
            }
        }
        Ok(table)
    }

    /// Where this table differs from `reference`, in the functions named and in the constants. The functions that come
    /// `later` must be missing.
    pub(crate) fn differences(&self, reference: &Table, functions: &[String], later: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for name in functions {
            match (self.functions.get(name), later.contains(&&**name)) {
                (None, false) => found.push(format!("{name} is not declared")),
                (Some(_), true) => found.push(format!("{name} is declared, but said to come in a later version")),
                (Some(mine), false) if Some(mine) != reference.functions.get(name) => {
                    let other = reference.functions.get(name);
                    found.push(format!("{name} has other types than in the table: {mine:?}, there {other:?}"));
                }
                _ => {}
            }
        }
        for (name, value) in &reference.constants {
            let mine = self.constants.get(name);
            if mine != Some(value) && !MORE_TEAMS.contains(&&**name) {
                found.push(format!("{name} is {mine:?}, in the table {value}"));
            }
        }
        found
    }

    /// How the reduction differs from the one of its form that is in the table.
    pub(crate) fn misshapen(&self, reduction: &Reduction) -> Option<String> {
        let Reduction { name, element, representative } = reduction;
        let (Some(mine), Some(like)) = (self.functions.get(name), self.functions.get(representative)) else {
            return Some(format!("{name} or {representative} is not declared"));
        };
        let mut expected = like.clone();
        for input in &mut expected.inputs {
            match &**input {
                "* mut i32" => *input = format!("* mut {element}"),
                "* const i32" => *input = format!("* const {element}"),
                _ => {}
            }
        }
        (*mine != expected).then(|| format!("{name} has not the shape of {representative}: {mine:?}"))
    }
}

/// The types of `Result<unsafe extern "C" fn(…) -> …, …>`.
fn signature(field: &Type) -> Option<Signature> {
    let Type::Path(result) = field else { return None };
    let PathArguments::AngleBracketed(arguments) = &result.path.segments.last()?.arguments else { return None };
    let GenericArgument::Type(Type::BareFn(function)) = arguments.args.first()? else { return None };
    let output = match &function.output {
        ReturnType::Default => "()".to_string(),
        ReturnType::Type(_, output) => words(output),
    };
    Some(Signature { inputs: function.inputs.iter().map(|input| words(&input.ty)).collect(), output })
}

/// The text of a piece of code, with one space between words.
fn words(code: &impl ToTokens) -> String {
    code.to_token_stream().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: &str) -> Table {
        Table::read(&format!("pub const A: i32 = 1;\npub struct Functions {{ __library: Library, {functions} }}"))
            .unwrap()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    const SUM: &str = "pub sum: Result<fn(team: Team, to: *mut i32, from: *const i32) -> c_int, E>,";

    #[test]
    fn the_same_functions_and_constants_do_not_differ() {
        let renamed = SUM.replace("to:", "dest:");
        assert_eq!(table(&renamed).differences(&table(SUM), &names(&["sum"]), &[]), names(&[]));
    }

    #[test]
    fn a_missing_function_another_type_and_another_value_are_told() {
        let other = table(&SUM.replace("-> c_int", "-> ()")).differences(&table(SUM), &names(&["sum", "gone"]), &[]);
        assert!(other.len() == 2 && other[0].contains("other types") && other[1].contains("gone"), "{other:?}");
        let early = table(SUM).differences(&table(SUM), &names(&["sum"]), &["sum"]);
        assert!(early.len() == 1 && early[0].contains("later"), "{early:?}");
        let value = Table::default().differences(&table(""), &[], &[]);
        assert_eq!(value, ["A is None, in the table 1"]);
    }

    #[test]
    fn a_reduction_may_differ_in_its_element_alone() {
        let reduction = |name: &str| Reduction {
            name: name.to_string(),
            element: "f32".to_string(),
            representative: "sum".to_string(),
        };
        let like = SUM.replace("sum", "max").replace("i32", "f32");
        let both = table(&format!("{SUM} {like}"));
        assert_eq!(both.misshapen(&reduction("max")), None);
        assert!(both.misshapen(&reduction("min")).unwrap().contains("not declared"));
        let odd = like.replace("team: Team, ", "");
        assert!(table(&format!("{SUM} {odd}")).misshapen(&reduction("max")).unwrap().contains("shape of sum"));
    }
}
