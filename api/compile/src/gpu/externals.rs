//! [`externals`], [`entries`] and [`has_variables`]: the functions that PTX calls and does not define, its kernels, what they can change.

/// A function that PTX declares as external.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct External {
    /// Its name.
    pub name: String,
    /// Bytes of what it returns; `None` for nothing.
    pub result: Option<usize>,
    /// Bytes of each parameter.
    pub parameters: Vec<usize>,
}

impl External {
    /// Whether it is one of NVSHMEM's functions, by its name.
    #[must_use]
    pub fn is_nvshmem(&self) -> bool {
        self.public_name().starts_with("nvshmem")
    }

    /// The name that it has in NVSHMEM's headers. NVSHMEM4Py's functions for Numba have others, such as
    /// `_Z24nvshmemx_int32_put_block_nbst`; and of a static function with its types, `_ZL26nvshmemx_barrier_all_blockv_nbst`.
    #[must_use]
    pub fn public_name(&self) -> &str {
        let unmangled = || {
            let rest = self.name.strip_prefix("_Z")?.strip_suffix("_nbst")?;
            let behind = |rest: &str| rest.find(|c: char| !c.is_ascii_digit());
            let Some(rest) = rest.strip_prefix('L') else { return rest.get(behind(rest)?..) };
            // Here the types follow the name, so the length is needed to cut the name off. Only for static functions is the
            // length always right.
            let (length, rest) = rest.split_at(behind(rest)?);
            rest.get(..length.parse().ok()?)
        };
        unmangled().unwrap_or(&self.name)
    }
}

/// The functions that PTX declares as external (`.extern .func`), by name. NVSHMEM's are among them, and those that the driver has,
/// such as `vprintf`.
///
/// # Errors
/// In words, with the line: a declaration that is no PTX.
///
/// ```
/// let ptx = ".version 9.0\n.target sm_90\n.extern .func nvshmem_int_p\n(\n.param .b64 a,\n.param .b32 b,\n.param .b32 c\n)\n;";
/// let found = onesided_compile::gpu::externals(ptx)?;
/// assert_eq!((found[0].name.as_str(), &found[0].parameters[..]), ("nvshmem_int_p", &[8, 4, 4][..]));
/// # Ok::<(), String>(())
/// ```
pub fn externals(ptx: &str) -> Result<Vec<External>, String> {
    let text = without_comments(ptx);
    let mut found = Vec::new();
    for (at, word) in text.match_indices(".extern") {
        let rest = text[at + word.len()..].trim_start();
        let Some(rest) = rest.strip_prefix(".func") else { continue };
        let line = text[..at].matches('\n').count() + 1;
        let external = rest.split_once(';').and_then(|(declaration, _)| declared(declaration));
        found.push(external.ok_or_else(|| format!("line {line}: this declaration of a function is not PTX"))?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether PTX has variables in global memory, which kernels can change and which outlive them. Strings that kernels print count as such.
///
/// ```
/// use onesided_compile::gpu::has_variables;
/// assert!(has_variables(".visible .global .align 4 .u32 count;"));
/// assert!(!has_variables(".const .align 4 .u32 limit = 3; .entry k() { ld.global.u32 %r1, [%rd1]; }"));
/// ```
#[must_use]
pub fn has_variables(ptx: &str) -> bool {
    without_comments(ptx).split_whitespace().any(|word| word == ".global")
}

/// Comments replaced by blanks, so that lines keep their numbers.
fn without_comments(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        text.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") {
            rest[at..].find('\n').map(|end| at + end)
        } else {
            rest[at + 2..].find("*/").map(|end| at + 2 + end + 2)
        };
        let end = end.unwrap_or(rest.len());
        text.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        text.push(' ');
        rest = &rest[end..];
    }
    text + rest
}

/// `(.param .b32 result) name (.param .b64 a, …) .attributes`.
fn declared(text: &str) -> Option<External> {
    let text = text.trim_start();
    let (result, rest) = match text.strip_prefix('(') {
        Some(inner) => {
            let (result, rest) = inner.split_once(')')?;
            (Some(size(result)?), rest.trim_start())
        }
        None => (None, text),
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let parameters = match rest.trim_start().strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.0,
        None => "",
    };
    let parameters = parameters.split(',').filter(|one| !one.trim().is_empty());
    let parameters = parameters.map(size).collect::<Option<_>>()?;
    (!name.is_empty()).then(|| External { name: name.to_string(), result, parameters })
}

/// Bytes of `.param .align 2 .b8 name[2]`.
fn size(parameter: &str) -> Option<usize> {
    let words: Vec<_> = parameter.split_whitespace().collect();
    let mut words = words.into_iter().peekable();
    if !matches!(words.next()?, ".param" | ".reg") {
        return None;
    }
    if words.peek() == Some(&".align") {
        words.nth(1)?;
    }
    let bits: usize = words.next()?.strip_prefix(['.'])?.trim_start_matches(char::is_alphabetic).parse().ok()?;
    let name = words.next_back().unwrap_or_default(); // before it may stand what a pointer points to
    let count = match name.split_once('[') {
        Some((_, count)) => count.strip_suffix(']')?.parse().ok()?,
        None => 1,
    };
    (bits / 8).checked_mul(count)
}

/// A kernel of PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Size and alignment of each parameter, in bytes.
    pub parameters: Vec<(usize, usize)>,
}

/// The kernels of PTX (`.entry`), in their order.
///
/// # Errors
/// In words, with the line: a declaration that is no PTX.
///
/// ```
/// let ptx = ".version 9.0\n.target sm_90\n.visible .entry k(\n.param .u64 a,\n.param .align 8 .b8 b[24]\n)\n{ ret; }";
/// let found = onesided_compile::gpu::entries(ptx)?;
/// assert_eq!((found[0].name.as_str(), &found[0].parameters[..]), ("k", &[(8, 8), (24, 8)][..]));
/// # Ok::<(), String>(())
/// ```
pub fn entries(ptx: &str) -> Result<Vec<Entry>, String> {
    let text = without_comments(ptx);
    let mut found = Vec::new();
    for (at, word) in text.match_indices(".entry") {
        let rest = &text[at + word.len()..];
        let line = text[..at].matches('\n').count() + 1;
        let entry = rest.split_once('{').and_then(|(head, _)| entry(head));
        found.push(entry.ok_or_else(|| format!("line {line}: this declaration of a kernel is not PTX"))?);
    }
    Ok(found)
}

/// `name(.param .u64 a, …) .attributes`.
fn entry(head: &str) -> Option<Entry> {
    let head = head.trim_start();
    let end = head.find(|c: char| c == '(' || c.is_whitespace()).unwrap_or(head.len());
    let (name, rest) = head.split_at(end);
    let parameters = match rest.trim_start().strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.0,
        None => "",
    };
    let parameters = parameters.split(',').filter(|one| !one.trim().is_empty());
    let parameters = parameters.map(|one| Some((size(one)?, alignment(one)?))).collect::<Option<_>>()?;
    (!name.is_empty()).then(|| Entry { name: name.to_string(), parameters })
}

/// What stands behind `.param .align`, or the size of the type.
fn alignment(parameter: &str) -> Option<usize> {
    let mut words = parameter.split_whitespace().skip(1);
    match words.next()? {
        ".align" => words.next()?.parse().ok(),
        _ => size(parameter.split('[').next()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_with_their_sizes() {
        let ptx = "// .extern .func no\n/* .extern .func\nno; */.extern .func  (.param .b32 func_retval0) nvshmem_my_pe\n()\n;\n\
                   .extern .func nvshmem_half_p\n(\n\t.param .b64 p0,\n\t.param .align 2 .b8 p1[2],\n\t.param .b32 p2\n)\n;\n\
                   .extern .func exit\n(.param .b32 a) .noreturn;\n.extern .shared .align 4 .b8 room[];\n\
                   .extern .func nvshmem_fence;\n.extern .func nvshmem_fence;\n";
        let found = externals(ptx).unwrap();
        let told: Vec<_> =
            found.iter().map(|e| (e.name.as_str(), e.result, e.parameters.as_slice(), e.is_nvshmem())).collect();
        assert_eq!(
            told,
            [
                ("exit", None, &[4][..], false),
                ("nvshmem_fence", None, &[], true),
                ("nvshmem_half_p", None, &[8, 2, 4], true),
                ("nvshmem_my_pe", Some(4), &[], true),
            ]
        );
    }

    #[test]
    fn functions_for_numba_have_their_public_names() {
        for (name, expected) in [
            ("nvshmem_int_p", "nvshmem_int_p"),
            ("_Z24nvshmemx_int32_put_block_nbst", "nvshmemx_int32_put_block"),
            ("_Z11nvshmemx_mc_ptr_nbst", "nvshmemx_mc_ptr"),
            ("_ZL23nvshmemx_team_sync_warpi_nbst", "nvshmemx_team_sync_warp"),
            ("_Z1kPi", "_Z1kPi"),
            ("_ZLx_nbst", "_ZLx_nbst"),
        ] {
            let external = External { name: name.to_string(), result: None, parameters: vec![] };
            assert_eq!(external.public_name(), expected);
        }
    }

    #[test]
    fn kernels_are_read_with_sizes_and_alignments() {
        let ptx = "// .entry no(\n.visible .entry _Z1kPi(\n\t.param .u64 .ptr .align 1 _Z1kPi_param_0,\n\t.param .u8 b,\n\
                   \t.param .align 4 .b8 c[12]\n)\n.maxntid 64, 1, 1\n{\n\tret;\n}\n.visible .entry none()\n{ret;}\n.entry bare {}";
        let found = entries(ptx).unwrap();
        let told: Vec<_> = found.iter().map(|entry| (entry.name.as_str(), entry.parameters.as_slice())).collect();
        assert_eq!(told, [("_Z1kPi", &[(8, 8), (1, 1), (12, 4)][..]), ("none", &[]), ("bare", &[])]);
        assert_eq!(entries("\n.entry k(").unwrap_err(), "line 2: this declaration of a kernel is not PTX");
    }

    #[test]
    fn what_is_no_declaration_is_refused_with_its_line() {
        for wrong in [
            ".extern .func f(.param .b64 a",
            ".extern .func (.param x) f;",
            ".extern .func ;",
            ".extern .func f(b64 a);",
        ] {
            let why = externals(&format!(".version 9.0\n{wrong}")).unwrap_err();
            assert_eq!(why, "line 2: this declaration of a function is not PTX", "{wrong}");
        }
    }
}
