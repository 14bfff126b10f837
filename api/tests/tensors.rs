//! What is refused of a tensor: the argument, and what would be right.

use onesided::{Argument, ErrorKind, Fill, Pe, Result, Swizzle, TensorLayout, TensorMap, args};
use onesided_sim::{Config, Sim, Simulation};

fn text(result: Result<TensorMap>) -> String {
    let error = result.expect_err("it is refused");
    assert_eq!((error.kind(), error.call()), (ErrorKind::InvalidArgument, "map"), "{error}");
    assert!(error.at().file().ends_with("tensors.rs"), "the caller's line: {error}");
    error.message().to_string()
}

/// What a program of one PE gives.
fn on_one_pe<R: Send + 'static>(program: impl Fn(&Pe<Sim>) -> Result<R> + Send + Sync + 'static) -> R {
    let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
    run.into_results().unwrap().remove(0)
}

#[test]
fn refusals_name_the_argument_and_what_is_right() {
    let found = on_one_pe(|pe| {
        let (bytes, words) = (pe.alloc_zeroed::<u8>(4096)?, pe.alloc_zeroed::<f32>(1024)?);
        let doubles = pe.alloc_external::<f64>(512)?;
        let layout = TensorLayout::new;
        let square = layout(&[32, 32], &[16, 4]);
        let texts = vec![
            text(layout(&[], &[]).map(&words)),
            text(layout(&[1; 6], &[4, 1, 1, 1, 1, 1]).map(&words)),
            text(layout(&[32, 32], &[16]).map(&words)),
            text(layout(&[32, 0], &[16, 4]).map(&words)),
            text(layout(&[(1 << 32) + 1], &[16]).map(&words)),
            text(layout(&[32, 32], &[16, 0]).map(&words)),
            text(layout(&[512], &[260]).map(&words)),
            text(layout(&[32, 32], &[6, 4]).map(&words)),
            text(layout(&[32, 32], &[24, 4]).map(&bytes)),
            text(square.clone().strides(&[]).map(&words)),
            text(square.clone().strides(&[128, 128]).map(&words)),
            text(square.clone().strides(&[136]).map(&words)),
            text(square.clone().strides(&[1 << 40]).map(&words)),
            text(layout(&[33, 32], &[16, 4]).map(&words)),
            text(square.clone().steps(&[1]).map(&words)),
            text(square.clone().steps(&[1, 9]).map(&words)),
            text(square.clone().steps(&[1, 0]).map(&words)),
            text(square.clone().steps(&[2, 1]).map(&words)),
            text(square.clone().swizzle(Swizzle::Bytes32).map(&words)),
            text(layout(&[32, 16], &[32, 4]).swizzle(Swizzle::Bytes128).map(&doubles)),
            text(layout(&[32, 32], &[16, 4]).fill(Fill::NaN).map(&bytes)),
            text(square.map(words.slice(1..))),
            text(square.map(words.slice(..1023))),
            text(square.clone().strides(&[(1 << 40) - 16]).map(&words)),
        ];
        pe.free_external(doubles)?;
        pe.free(words)?;
        pe.free(bytes)?;
        Ok(texts)
    });
    let expected = [
        "sizes has 0 dimensions; a tensor has 1 to 5",
        "sizes has 6 dimensions; a tensor has 1 to 5",
        "tile has 1 number; a tensor of 2 dimensions has 2",
        "sizes[1] is 0; it is at least 1 and at most 4294967296",
        "sizes[0] is 4294967297; it is at least 1 and at most 4294967296",
        "tile[1] is 0; it is at least 1 and at most 256",
        "tile[0] is 260; it is at least 1 and at most 256",
        "tile[0] is 6, of elements of 4 bytes; it is a multiple of 4, so that a row has one of 16 bytes",
        "tile[0] is 24, of elements of 1 byte; it is a multiple of 16, so that a row has one of 16 bytes",
        "strides has 0 numbers; a tensor of 2 dimensions has 1: one for each but the first",
        "strides has 2 numbers; a tensor of 2 dimensions has 1: one for each but the first",
        "strides[0] is 136 bytes; it is a multiple of 16 and less than 1099511627776",
        "strides[0] is 1099511627776 bytes; it is a multiple of 16 and less than 1099511627776",
        "strides[0] is 132 bytes; it is a multiple of 16 and less than 1099511627776; if the memory has gaps, say so with strides",
        "steps has 1 number; a tensor of 2 dimensions has 2",
        "steps[1] is 9; it is at least 1 and at most 8",
        "steps[1] is 0; it is at least 1 and at most 8",
        "steps[0] is 2; in the first dimension all elements are copied, in steps of 1",
        "tile[0] is 16, of elements of 4 bytes; with a swizzle of 32 bytes it is at most 8",
        "tile[0] is 32, of elements of 8 bytes; with a swizzle of 128 bytes it is at most 16",
        "fill is NaN, and elements are u8; integers are filled with zeros",
        "memory begins at byte 4 of its allocation; a tensor begins at a multiple of 16",
        "the tensor has 4096 bytes from its first to its last, and memory has 4092",
        "the tensor has 34084860460688 bytes from its first to its last, and memory has 4096",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_within_the_limits_is_a_map() {
    let found = on_one_pe(|pe| {
        let words = pe.alloc_zeroed::<u32>(1024)?;
        let whole = TensorLayout::new(&[32, 32], &[32, 32]).swizzle(Swizzle::Bytes128).map(&words)?;
        let rows = TensorLayout::new(&[4, 3], &[4, 256]).strides(&[64]).steps(&[1, 3]).map(words.slice(4..44))?;
        // Of a tensor of five dimensions only the first have more than one element.
        let five = TensorLayout::new(&[1024, 1, 1, 1, 1], &[4, 1, 1, 1, 1]).map(&words)?;
        let sizes = [&whole, &rows, &five].map(TensorMap::tile_bytes);
        // In a structure it begins at a multiple of 128.
        let structure = Argument::structure(args![1i32, &whole, 2i32]);
        // And bytes at a multiple of their own alignment.
        let bytes = Argument::structure(args![1i32, Argument::bytes(&[0; 8], 8), 2i32]);
        let bytes_of = [structure, bytes].map(|argument| argument.value().size());
        pe.free(words)?;
        Ok((sizes, bytes_of))
    });
    assert_eq!(found, ([4096, 4 * 86 * 4, 16], [384, 24]));
}
