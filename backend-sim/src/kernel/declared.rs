//! Every function that our `nvshmem.h` and `nvshmemx.h` declare decodes, with the parameters that they declare.
//!
//! The headers are lists and macros. They are expanded here by a preprocessor that knows just what they use.

use std::collections::{BTreeMap, BTreeSet};

use onesided::{DType, ReduceOp};
use onesided_ptx::{External, Module};

use super::name::{Function, UNSUPPORTED, Verb};
use super::signature::Convention;
use super::types::TYPES;

const HEADERS: [&str; 2] =
    [include_str!("../../../api/compile/include/nvshmem.h"), include_str!("../../../api/compile/include/nvshmemx.h")];

/// A declaration: name, bytes of each parameter, bytes of the result.
#[derive(Debug)]
struct Declared {
    name: String,
    parameters: Vec<u32>,
    names: Vec<String>,
    result: u32,
}

#[derive(Debug)]
struct Macro {
    parameters: Vec<String>,
    variadic: bool,
    body: String,
}

impl Macro {
    /// Whether it stands without parentheses.
    fn is_plain(&self) -> bool {
        self.parameters.is_empty() && !self.variadic
    }
}

/// Words and single signs; white space is left out, and `##` is one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut joins = false;
    for c in text.chars() {
        let letter = c.is_alphanumeric() || c == '_';
        match words.last_mut() {
            Some(last) if letter && joins => last.push(c),
            Some(last) if c == '#' && last == "#" => last.push(c),
            _ if c.is_whitespace() => {}
            _ => words.push(c.into()),
        }
        joins = letter;
    }
    words
}

/// The arguments of a macro's call that begins at `words[at]`, an opening parenthesis, and where the text goes on.
fn arguments(words: &[String], at: usize) -> (Vec<Vec<String>>, usize) {
    let (mut depth, mut arguments) = (0, vec![Vec::new()]);
    for (place, word) in words.iter().enumerate().skip(at) {
        match word.as_str() {
            "(" if depth == 0 => depth = 1,
            ")" if depth == 1 => return (arguments, place + 1),
            "," if depth == 1 => arguments.push(Vec::new()),
            _ => {
                depth = depth + i32::from(word == "(") - i32::from(word == ")");
                arguments.last_mut().unwrap().push(word.clone());
            }
        }
    }
    panic!("a call of a macro does not end")
}

fn expand(text: &[String], macros: &BTreeMap<String, Macro>) -> Vec<String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let calls = |found: &&Macro| found.is_plain() || text.get(at + 1).is_some_and(|word| word == "(");
        let Some(found) = macros.get(&text[at]).filter(calls) else {
            out.push(text[at].clone());
            at += 1;
            continue;
        };
        let mut given = Vec::new();
        at += 1;
        if !found.is_plain() {
            (given, at) = arguments(text, at);
            given = given.iter().map(|argument| expand(argument, macros)).collect();
        }
        let mut body: Vec<String> = Vec::new();
        for word in words(&found.body) {
            let place = found.parameters.iter().position(|parameter| *parameter == word);
            match (place, word.as_str()) {
                (Some(place), _) => match given.get(place) {
                    // An empty argument is marked, so that it can be pasted.
                    Some(argument) if !argument.is_empty() => body.extend(argument.iter().cloned()),
                    _ => body.push(String::new()),
                },
                (None, "__VA_ARGS__") => {
                    let rest: Vec<&Vec<String>> = given.iter().skip(found.parameters.len()).collect();
                    body.extend(
                        rest.iter()
                            .map(|argument| argument.join(" "))
                            .collect::<Vec<_>>()
                            .join(",")
                            .split_inclusive(',')
                            .flat_map(words),
                    );
                }
                (None, _) => body.push(word),
            }
        }
        let mut pasted: Vec<String> = Vec::new();
        let mut body = body.into_iter();
        while let Some(word) = body.next() {
            match (word.as_str(), pasted.last_mut()) {
                ("##", Some(last)) => last.push_str(&body.next().unwrap()),
                _ => pasted.push(word),
            }
        }
        pasted.retain(|word| !word.is_empty());
        out.extend(expand(&pasted, macros));
    }
    out
}

fn size(parameter: &[String]) -> u32 {
    if parameter.iter().any(|word| word == "*") {
        return 8;
    }
    let known: Vec<&str> = parameter.iter().map(String::as_str).filter(|word| *word != "const").collect();
    match known.first().copied() {
        Some("char" | "signed" | "int8_t" | "uint8_t") => 1,
        Some("short" | "int16_t" | "uint16_t" | "__half" | "__nv_bfloat16") => 2,
        Some("unsigned") => match known.get(1).copied() {
            Some("char") => 1,
            Some("short") => 2,
            Some("long") => 8,
            _ => 4,
        },
        Some(
            "int"
            | "float"
            | "int32_t"
            | "uint32_t"
            | "nvshmem_team_t"
            | "nvshmemx_qp_handle_t"
            | "nvshmemx_smem_amount_t",
        ) => 4,
        Some("long" | "double" | "int64_t" | "uint64_t" | "size_t" | "ptrdiff_t" | "nvshmemx_region_handle_t") => 8,
        Some("void") => 0,
        other => panic!("the size of {other:?} is not known"),
    }
}

fn declared() -> Vec<Declared> {
    let mut macros = BTreeMap::new();
    let mut plain = String::new();
    for header in HEADERS {
        let mut text = header.replace("\\\n", " ");
        while let (Some(begin), Some(end)) = (text.find("/*"), text.find("*/")) {
            text.replace_range(begin..end + 2, "");
        }
        for line in text.lines() {
            let Some(definition) = line.strip_prefix("#define ") else {
                if !line.starts_with('#') {
                    plain.push_str(line);
                    plain.push('\n');
                }
                continue;
            };
            let name: String = definition.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let rest = &definition[name.len()..];
            let (parameters, body) = match rest.strip_prefix('(') {
                Some(rest) => rest.split_once(')').unwrap(),
                None => ("", rest),
            };
            let mut parameters: Vec<String> = parameters.split(',').map(|name| name.trim().to_owned()).collect();
            let variadic = parameters.last().is_some_and(|name| name == "...");
            parameters.retain(|name| !name.is_empty() && name != "...");
            macros.insert(name, Macro { parameters, variadic, body: body.to_owned() });
        }
    }
    let text = expand(&words(&plain), &macros);
    text.split(|word| word == ";")
        .filter_map(|statement| {
            let begin = statement.iter().position(|word| word == "__device__")?;
            let open = statement.iter().position(|word| word == "(")?;
            let (given, _) = arguments(statement, open);
            let given: Vec<_> = given.into_iter().filter(|words| *words != ["void"]).collect();
            Some(Declared {
                name: statement[open - 1].clone(),
                parameters: given.iter().map(|words| size(words)).collect(),
                names: given.iter().map(|words| words.last().unwrap().clone()).collect(),
                result: size(&statement[begin + 1..open - 1]),
            })
        })
        .collect()
}

/// A function as a module declares it.
pub(super) fn external(name: &str, parameters: &[u32], result: u32) -> External {
    let list: Vec<String> =
        parameters.iter().enumerate().map(|(place, &bytes)| slot(bytes, &format!("p{place}"))).collect();
    let result = if result == 0 { String::new() } else { format!("({}) ", slot(result, "r")) };
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func {result}{name}\n({})\n;\n",
        list.join(", ")
    );
    Module::parse(&text).unwrap().externals()[0].clone()
}

fn slot(bytes: u32, name: &str) -> String {
    match bytes {
        4 => format!(".param .b32 {name}"),
        8 => format!(".param .b64 {name}"),
        bytes => format!(".param .align 1 .b8 {name}[{bytes}]"),
    }
}

#[test]
fn every_declared_function_decodes() {
    let declared = declared();
    let names: BTreeSet<&str> = declared.iter().map(|function| function.name.as_str()).collect();
    assert!(names.len() > 2300 && names.len() == declared.len(), "{} names", names.len());
    let mut refused = BTreeSet::new();
    let mut others = BTreeSet::new();
    for Declared { name, parameters, names, result } in &declared {
        let function = match Function::decode(&external(name, parameters, *result)) {
            Ok(function) => function,
            Err(why) => {
                assert!(UNSUPPORTED.iter().any(|(_, reason)| why.ends_with(reason)), "{why}");
                refused.insert(name.as_str());
                continue;
            }
        };
        assert_eq!((&function.sizes(), function.convention), (parameters, Convention::C), "{name}");
        for (role, declared) in function.roles().iter().zip(names) {
            let same = match declared.as_str() {
                "nreduce" => "nelems",
                "ivar" => "ivars",
                "src_team" => "team",
                "src_pe" => "pe",
                "dest" | "name" if matches!(function.verb, Verb::Ptr | Verb::Name) => "ptr",
                other => other,
            };
            assert_eq!(role.name(), same, "{name}");
        }
        others.extend(variants(name));
    }
    // Nobody declares it under the other prefix, for another type, with another group or with a queue pair besides.
    for other in others.iter().filter(|other| !names.contains(other.as_str())) {
        assert!(Function::of_name(other).is_err(), "{other} decodes");
    }
    let strided = |name: &&&str| name.contains("iput128") || name.contains("iget128");
    assert_eq!(refused.iter().filter(strided).count(), 6);
    refused.retain(|name| !strided(&name));
    let expected = [
        "nvshmemx_double2_maxloc_reduce_block",
        "nvshmemx_double_atomic_add",
        "nvshmemx_double_atomic_fetch_add",
        "nvshmemx_float_atomic_add",
        "nvshmemx_float_atomic_fetch_add",
        "nvshmemx_half_atomic_add",
        "nvshmemx_half_atomic_fetch_add",
        "nvshmemx_putmem_signal_counted_nbi_block",
        "nvshmemx_signal_counted_load",
        "nvshmemx_signal_counted_reset",
        "nvshmemx_signal_counted_wait_until",
    ];
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), expected);
}

/// Names that differ from a declared one in prefix, group, queue pair or type.
fn variants(name: &str) -> Vec<String> {
    let rest = name.split_once('_').unwrap().1;
    let rest = rest.strip_prefix("qp_").unwrap_or(rest);
    let rest = ["_warp", "_warpgroup", "_block"].iter().find_map(|group| rest.strip_suffix(group)).unwrap_or(rest);
    let mut stems = vec![rest.to_owned()];
    if let Some((_, operation)) = rest.split_once('_') {
        stems.extend(TYPES.iter().map(|(name, ..)| format!("{name}_{operation}")));
    }
    let mut variants = Vec::new();
    for stem in stems {
        for prefix in ["nvshmem_", "nvshmemx_", "nvshmemx_qp_"] {
            variants.extend(["", "_warp", "_warpgroup", "_block"].map(|group| format!("{prefix}{stem}{group}")));
        }
    }
    variants
}

#[test]
fn the_headers_have_the_reductions_of_the_api() {
    let declared = declared();
    let names: BTreeSet<&str> = declared.iter().map(|function| function.name.as_str()).collect();
    for (dtype, op) in DType::ALL.into_iter().flat_map(|dtype| ReduceOp::ALL.map(|op| (dtype, op))) {
        let mut named = TYPES.iter().filter(|(_, known, _)| *known == dtype);
        let is_declared = named.any(|(name, ..)| names.contains(&*format!("nvshmem_{name}_{}_reduce", op.name())));
        assert_eq!(is_declared, op.reduces(dtype), "{} of {dtype}", op.name());
    }
}

#[test]
fn our_header_names_the_versions_that_kernels_are_told() {
    let number = |name: &str| {
        let define = format!("#define {name} ");
        HEADERS[0].lines().find_map(|line| line.strip_prefix(&define)).unwrap().parse::<i32>().unwrap()
    };
    let specification = ["NVSHMEM_MAJOR_VERSION", "NVSHMEM_MINOR_VERSION"].map(number);
    let library =
        ["NVSHMEM_VENDOR_MAJOR_VERSION", "NVSHMEM_VENDOR_MINOR_VERSION", "NVSHMEM_VENDOR_PATCH_VERSION"].map(number);
    assert_eq!((specification, library), (super::operands::SPECIFICATION, super::operands::LIBRARY));
}

#[test]
fn other_front_ends_pass_arguments_in_their_ways() {
    let convention = |name: &str, parameters: &[u32], result| {
        Function::decode(&external(name, parameters, result)).map(|function| function.convention)
    };
    let put = "_Z24nvshmemx_int32_put_block_nbst";
    assert_eq!(convention(put, &[8, 8, 8, 8, 8], 4), Ok(Convention::References));
    assert_eq!(convention("nvshmem_my_pe", &[], 4), Ok(Convention::C));
    assert_eq!(convention("nvshmem_my_pe", &[8], 4), Ok(Convention::Numba));
    assert_eq!(convention("nvshmem_int_p", &[8, 4, 4], 0), Ok(Convention::C));
    assert_eq!(convention("nvshmem_int_p", &[8, 8, 4, 4], 4), Ok(Convention::Numba));
    assert_eq!(convention("nvshmem_short_g", &[8, 4], 4), Ok(Convention::C), "small values may have 32 bits");

    // Static functions have their parameters' types in the name. One name has a wrong number.
    assert_eq!(convention("_ZL26nvshmemx_barrier_all_blockv_nbst", &[8], 4), Ok(Convention::References));
    assert_eq!(convention("_ZL29nvshmemx_float_alltoall_blockiPfPKfm_nbst", &[8; 5], 4), Ok(Convention::References));
    assert_eq!(convention("_Z11nvshmemx_mc_ptr_nbst", &[8, 8, 8], 4), Ok(Convention::References));

    // Triton has a result of everything, and PyTorch integers of 8 bytes.
    assert_eq!(convention("nvshmem_fence", &[], 4), Ok(Convention::C));
    assert_eq!(convention("nvshmem_signal_wait_until", &[8, 8, 8], 4), Ok(Convention::C));
    assert_eq!(convention("nvshmemx_putmem_signal_block", &[8; 7], 4), Ok(Convention::C));
    assert_eq!(convention("nvshmem_int_p", &[8, 8, 8], 4), Ok(Convention::C));
    assert!(convention("nvshmem_float_p", &[8, 8, 8], 4).is_err(), "an integer is no float");
    assert!(convention("nvshmem_int_put", &[4, 8, 8, 8], 4).is_err(), "half an address");

    let g = Function::decode(&external("_Z15nvshmem_float_g_nbst", &[8, 8, 8], 4)).unwrap();
    let small = Function::decode(&external("nvshmem_short_g", &[8, 4], 4)).unwrap();
    assert_eq!((small.widened(0xfffe) as u32 as i32, g.widened(0xfffe)), (-2, 0xfffe), "PTX widens small integers");
}

#[test]
fn what_is_wrong_is_said() {
    let why =
        |name: &str, parameters: &[u32], result| Function::decode(&external(name, parameters, result)).unwrap_err();
    let all = [
        why("launch_missiles", &[], 0),
        why("nvshmemi_ibgda_quiet", &[4, 4], 0),
        why("nvshmem_int_putt", &[8, 8, 8, 4], 0),
        why("nvshmem_flaot_put", &[8, 8, 8, 4], 0),
        why("nvshmem_float_atomic_and", &[8, 4, 4], 0),
        why("nvshmem_int_put_block", &[8, 8, 8, 4], 0),
        why("nvshmemx_int_put", &[8, 8, 8, 4], 0),
        why("nvshmemx_quiet_block", &[], 0),
        why("nvshmemx_qp_int_iput", &[8, 8, 8, 8, 8, 4, 4], 0),
        why("nvshmem_int_put", &[8, 8, 4, 4], 0),
        why("nvshmem_my_pe", &[], 0),
        why("_Z24nvshmemx_int32_put_block_nbst", &[8, 8, 8, 4], 4),
        why("nvshmemx_float_atomic_add", &[8, 4, 4], 0),
        why("nvshmem_iput128", &[8, 8, 8, 8, 8, 4], 0),
        why("nvshmemx_signal_counted_reset", &[8], 0),
        why("nvshmemx_region_start", &[8, 8], 4),
        why("nvshmemx_global_exit", &[4], 0),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_kernels_of_tests_and_examples_call_known_functions() {
    let mut calls = BTreeSet::new();
    for folder in ["ptx/kernels", "../examples/src/kernels", "../examples/src/kernels/python"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "ptx") {
                let module = Module::parse(&std::fs::read_to_string(&file).unwrap());
                for external in module.unwrap_or_else(|error| panic!("{}: {error}", file.display())).externals() {
                    match Function::decode(external) {
                        Ok(function) => drop(calls.insert(function.name)),
                        Err(why) => assert!(UNSUPPORTED.iter().any(|(_, reason)| why.ends_with(reason)), "{why}"),
                    }
                }
            }
        }
    }
    assert!(calls.len() >= 20 && calls.contains("nvshmemx_float_put_signal_nbi_block"), "{calls:?}");
}
