//! The text of a provider: each function defined under the name that PTX calls, with the arguments that PTX passes.
//!
//! The headers say what a function takes. PTX says what is passed, and front ends differ in that: CUDA C++ and CuTe DSL pass what the headers
//! declare. Numba stores the result where its first argument points to. NVSHMEM4Py's functions for Numba take the addresses of their
//! arguments, too. Triton passes integers of 8 bytes, and wants a result of every function. The compiler, which has the headers, finds
//! out which of these ways fits.

use std::fmt::Write as _;

use super::External;

/// Templates that read a function's types off its declaration, find the way in which PTX calls it, and pass the arguments on.
/// PTX passes and returns integers of less than 32 bits as 32.
const TEMPLATES: &str = "\
template <int N, class... T> struct os_nth { using type = int; };
template <int N, class H, class... T> struct os_nth<N, H, T...> { using type = typename os_nth<N - 1, T...>::type; };
template <class H, class... T> struct os_nth<0, H, T...> { using type = H; };
template <class R> constexpr int os_bytes() { return sizeof(R); }
template <> constexpr int os_bytes<void>() { return 0; }
template <> constexpr int os_bytes<bool>() { return 4; }
template <> constexpr int os_bytes<char>() { return 4; }
template <> constexpr int os_bytes<signed char>() { return 4; }
template <> constexpr int os_bytes<unsigned char>() { return 4; }
template <> constexpr int os_bytes<short>() { return 4; }
template <> constexpr int os_bytes<unsigned short>() { return 4; }
template <class T> constexpr bool os_is_float() { return false; }
template <> constexpr bool os_is_float<float>() { return true; }
template <class F> struct os_of;
template <class R, class... A> struct os_of<R (*)(A...)> {
    using result = R;
    static constexpr int count = sizeof...(A);
    static constexpr int bytes[] = {os_bytes<A>()..., 0};
    static constexpr bool is_float[] = {os_is_float<A>()..., false};
    template <int N> using parameter = typename os_nth<N, A...>::type;
};

enum os_way { os_unknown, os_plain, os_wide, os_numba, os_references };
template <class F, int Result, int... Has> constexpr os_way os_way_of(bool is_mangled) {
    using of = os_of<F>;
    const int has[] = {Has..., 0}, count = sizeof...(Has), result = os_bytes<typename of::result>();
    const bool is_behind = count == of::count + 1 && has[0] == 8 && Result == 4;
    bool plain = count == of::count && Result == result, numba = is_behind, references = is_behind;
    bool wide = count == of::count && (Result == result || Result == 4);
    for (int i = 0; i < of::count; i++) {
        if (count == of::count) {
            plain = plain && has[i] == of::bytes[i];
            wide = wide && (has[i] == of::bytes[i] || (has[i] == 8 && of::bytes[i] == 4 && !of::is_float[i]));
        }
        if (is_behind) {
            numba = numba && has[i + 1] == of::bytes[i];
            references = references && has[i + 1] == 8;
        }
    }
    if (is_mangled) return references ? os_references : os_unknown;
    return plain ? os_plain : numba ? os_numba : wide ? os_wide : os_unknown;
}

template <int Bytes> struct os_bits { using type = unsigned; };
template <> struct os_bits<8> { using type = unsigned long long; };
template <os_way W, class F, int N, int Bytes> struct os_passed { using type = typename os_bits<Bytes>::type; };
template <class F, int N, int Bytes> struct os_passed<os_plain, F, N, Bytes> {
    using type = typename os_of<F>::template parameter<N>;
};
template <os_way W, class F, int Bytes> struct os_returned { using type = typename os_bits<Bytes>::type; };
template <class F, int Bytes> struct os_returned<os_plain, F, Bytes> { using type = typename os_of<F>::result; };
template <class F> struct os_returned<os_plain, F, 0> { using type = void; };

template <class T, class Bits> __device__ inline T os_as(Bits bits) {
    T value{};
    memcpy(&value, &bits, sizeof(T) < sizeof(Bits) ? sizeof(T) : sizeof(Bits));
    return value;
}
template <os_way W, class T> __device__ inline T os_argument(unsigned long long passed) {
    if constexpr (W == os_references) return *reinterpret_cast<T *>(passed);
    else return os_as<T>(passed);
}
template <auto Function, class F> struct os_call;
template <auto Function, class R, class... A> struct os_call<Function, R (*)(A...)> {
    template <os_way W, class... Passed> __device__ static unsigned behind(unsigned long long to, Passed... passed) {
        if constexpr (os_bytes<R>() == 0) Function(os_argument<W, A>(passed)...);
        else *reinterpret_cast<R *>(to) = Function(os_argument<W, A>(passed)...);
        return 0;
    }
    template <os_way W, class Out, class... Passed> __device__ static Out make(Passed... passed) {
        if constexpr (W == os_plain) {
            return Function(passed...);
        } else if constexpr (W == os_numba || W == os_references) {
            return behind<W>(passed...);
        } else if constexpr (os_bytes<R>() == 0) {
            Function(os_as<A>(passed)...);
            return 0;
        } else {
            return os_as<Out>(Function(os_as<A>(passed)...));
        }
    }
};
";

/// Functions that `libnvshmem_device.a` has under their names.
pub(super) const IN_THE_LIBRARY: [&str; 1] = ["nvshmem_global_exit"];

/// Begins what is asserted.
pub(super) const ASSERTED: &str = "onesided: ";

/// The text that defines the functions.
pub(super) fn text(functions: &[External]) -> String {
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| _ = writeln!(text, "{line}");
    let is_in_library = |function: &External| IN_THE_LIBRARY.contains(&function.public_name());
    let renamed: Vec<&str> = functions.iter().filter(|one| !is_in_library(one)).map(External::public_name).collect();
    for name in &renamed {
        line(format_args!("#define {name} os_{name}"));
    }
    line(format_args!("#include <nvshmem.h>\n#include <nvshmemx.h>\n{TEMPLATES}"));
    for name in &renamed {
        line(format_args!("#undef {name}"));
    }
    for (place, function) in functions.iter().enumerate() {
        let External { name, result, parameters } = function;
        let rename = if is_in_library(function) { "" } else { "os_" };
        let (real, bytes) = (format!("{rename}{}", function.public_name()), result.unwrap_or(0));
        let (f, way) = (format!("decltype(&{real})"), format!("os_way_{place}"));
        let sizes: String = parameters.iter().map(|bytes| format!(", {bytes}")).collect();
        line(format_args!(
            "constexpr os_way {way} = os_way_of<{f}, {bytes}{sizes}>({});",
            name != function.public_name()
        ));
        // What the library has under the name that is called is called as it is.
        let is_there = real == *name;
        let right = if is_there { "== os_plain" } else { "!= os_unknown" };
        line(format_args!("static_assert({way} {right}, \"{ASSERTED}{}\");", call(function)));
        if is_there {
            continue;
        }
        let declared: Vec<_> = (0..)
            .zip(parameters)
            .map(|(place, bytes)| format!("typename os_passed<{way}, {f}, {place}, {bytes}>::type a{place}"))
            .collect();
        let passed: Vec<_> = (0..parameters.len()).map(|place| format!("a{place}")).collect();
        let returned = format!("typename os_returned<{way}, {f}, {bytes}>::type");
        line(format_args!(
            "extern \"C\" __device__ {returned} {name}({}) {{ return os_call<&{real}, {f}>::make<{way}, {returned}>({}); }}",
            declared.join(", "),
            passed.join(", ")
        ));
    }
    text
}

/// The call in words: `nvshmem_int_p is called with 2 arguments of 8 and 4 bytes, and no result`.
fn call(function: &External) -> String {
    let External { name, result, parameters } = function;
    let sizes: Vec<String> = parameters.iter().map(ToString::to_string).collect();
    let arguments = match sizes.as_slice() {
        [] => "no argument".to_string(),
        [one] => format!("an argument of {}", in_bytes(one)),
        [first @ .., last] => format!("{} arguments of {} and {}", sizes.len(), first.join(", "), in_bytes(last)),
    };
    let result =
        result.map_or_else(|| "no result".to_string(), |bytes| format!("a result of {}", in_bytes(&bytes.to_string())));
    format!("{name} is called with {arguments}, and {result}")
}

fn in_bytes(size: &str) -> String {
    format!("{size} byte{}", if size == "1" { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_in_words() {
        let function = |result, parameters: &[usize]| External {
            name: "nvshmem_x".to_string(),
            result,
            parameters: parameters.to_vec(),
        };
        assert_eq!(call(&function(None, &[])), "nvshmem_x is called with no argument, and no result");
        assert_eq!(
            call(&function(Some(4), &[8])),
            "nvshmem_x is called with an argument of 8 bytes, and a result of 4 bytes"
        );
        let three = "nvshmem_x is called with 3 arguments of 8, 4 and 4 bytes, and no result";
        assert_eq!(call(&function(None, &[8, 4, 4])), three);
    }

    #[test]
    fn a_function_that_the_library_has_is_not_defined_again() {
        let function = |name: &str, result, parameters: &[usize]| {
            text(&[External { name: name.to_string(), result, parameters: parameters.to_vec() }])
        };
        let text = function("nvshmem_global_exit", None, &[4]);
        assert!(text.starts_with("#include") && !text.contains("#define"), "{text}");
        assert!(!text.contains("extern \"C\""), "{text}");
        assert!(text.contains("static_assert(os_way_0 == os_plain, "), "{text}");
        let numba = function("_Z19nvshmem_global_exit_nbst", Some(4), &[8, 8]);
        assert!(numba.starts_with("#include") && numba.contains("os_call<&nvshmem_global_exit, "), "{numba}");
    }

    #[test]
    fn a_function_for_numba_is_defined_under_its_mangled_name() {
        let name = "_ZL26nvshmemx_barrier_all_blockv_nbst".to_string();
        let text = text(&[External { name, result: Some(4), parameters: vec![8] }]);
        assert!(text.starts_with("#define nvshmemx_barrier_all_block os_nvshmemx_barrier_all_block\n"), "{text}");
        assert!(text.contains("os_way_of<decltype(&os_nvshmemx_barrier_all_block), 4, 8>(true);"), "{text}");
        assert!(text.contains("::type _ZL26nvshmemx_barrier_all_blockv_nbst(typename os_passed<"), "{text}");
    }
}
