//! What the compiler says to mistakes that the types catch: the error must name the mistake and what is right.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mistake, as the body of a program, and what its error must say.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "pe.host().put(&dst, &external, 0)",
        &["`&Buf<f32, External>` cannot be the local operand of a transfer of `f32`", "pe.register_local(buf)"],
    ),
    (
        "pe.host().put(&dst, &[1.0_f32; 4], 0)",
        &[
            "`&[f32; 4]` cannot be the local operand of a transfer of `f32`",
            "`pe.write` copies them to symmetric memory",
        ],
    ),
    (
        "pe.host().put(dst, &src, 0)",
        &["`Buf<f32, Heap>` is not symmetric memory with elements of type", "consider borrowing here"],
    ),
    (
        "pe.host().get(&dst, &external, 0)",
        &["`&Buf<f32, External>` is not symmetric memory with elements of type `f32`", "pe.register_symmetric(buf)"],
    ),
    ("pe.host().put(&dst, &words, 0)", &["`&Buf<u32, Heap>` cannot be the local operand of a transfer of `f32`"]),
    (
        "pe.read(&vec![1.0_f32]).map(drop)",
        &["`&Vec<f32>` is not memory of this PE", "pass a buffer by reference", "values in private memory"],
    ),
    ("pe.alloc::<bool>(1).map(drop)", &["`bool` cannot be an element of symmetric memory", "a buffer of `u8`"]),
    ("pe.host().wait_until(dst.at(0), Cmp::Eq, 1.0)", &["`f32` cannot be waited for", "i16, i32, i64"]),
    ("pe.host().atomic_swap(bytes.at(0), 1, 0).map(drop)", &["`u8` cannot be fetched, set or swapped atomically"]),
    ("pe.host().atomic_add(dst.at(0), 1.0, 0)", &["`f32` has no atomic add, inc or compare-and-swap"]),
    ("pe.host().atomic_or(dst.at(0), 1.0, 0)", &["`f32` has no atomic and, or, xor"]),
    ("pe.host().signal_fetch(words.signal(0)).map(drop)", &["no method named `signal`", "Buf<u64, Heap>"]),
    ("pe.arena(|arena| arena.alloc::<f32>(1)).map(drop)", &["lifetime may not live long enough"]),
    (
        "let mut kept = None; pe.arena(|arena| { kept = Some(arena.alloc::<f32>(1)?); Ok(()) })",
        &["borrowed data escapes outside of closure"],
    ),
    ("pe.backend.free(dst.id(), At::caller())", &["field `backend` of struct `Pe` is private"]),
    ("Backend::free(pe, dst.id(), At::caller())", &["the trait bound `Pe<impl Backend>: Backend` is not satisfied"]),
    ("pe.host().pe.backend.free(dst.id(), At::caller())", &["field `pe` of struct `Issue` is private"]),
];

/// The library that cargo has built for these tests.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "onesided", "--lib", "--quiet", "--offline", "--message-format", "json"]);
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).unwrap();
    let mut paths = messages.split('"').filter(|text| text.ends_with("libonesided.rlib"));
    paths.next_back().expect("the library's file in cargo's messages").into()
}

/// What the compiler says to a program with this body.
fn errors_of(body: &str, library: &Path, folder: &Path) -> String {
    let program = format!(
        "use onesided::{{At, Backend, Cmp, Pe, Result}};
         pub fn program(pe: &Pe<impl Backend>) -> Result<()> {{
             let (dst, src, words) = (pe.alloc::<f32>(4)?, pe.alloc::<f32>(4)?, pe.alloc::<u32>(4)?);
             let (bytes, external) = (pe.alloc::<u8>(4)?, pe.alloc_external::<f32>(4)?);
             {body}
         }}"
    );
    let file = folder.join("program.rs");
    std::fs::write(&file, program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let dependencies = library.with_file_name("deps");
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"])
        .arg(folder)
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg("--extern")
        .arg(format!("onesided={}", library.display()))
        .arg(file)
        .output()
        .expect("rustc");
    let errors = String::from_utf8(compiled.stderr).unwrap();
    if compiled.status.success() { String::new() } else { errors }
}

#[test]
fn errors_name_the_mistake_and_what_is_right() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("diagnostics");
    std::fs::create_dir_all(&folder).unwrap();
    let library = library();
    assert_eq!(errors_of("pe.host().put(&dst, &src, 0)", &library, &folder), "", "what is right compiles");
    for (body, expected) in MISTAKES {
        let errors = errors_of(body, &library, &folder);
        for text in *expected {
            assert!(errors.contains(text), "{body}: expected {text:?} in:\n{errors}");
        }
    }
}
