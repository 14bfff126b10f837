//! Strided transfers, element by element. They are for PEs behind a network and for strides of gigabytes, for which the
//! library's own strided calls end the process.

use onesided::backend::{Op, Span};

/// Whether the strides are wider than CUDA's two-dimensional copies take. The library uses these for strided transfers, and
/// ends the process if they fail.
pub(crate) fn is_wide(op: &Op) -> bool {
    match *op {
        Op::IPut { dst_stride, src_stride, dtype, .. } | Op::IGet { dst_stride, src_stride, dtype, .. } => {
            dst_stride.max(src_stride) as usize * dtype.size() > i32::MAX as usize
        }
        _ => false,
    }
}

/// The transfers of single elements of which a strided one consists.
pub(crate) fn elements(op: &Op) -> impl Iterator<Item = Op> {
    let (dst, src, dst_stride, src_stride, count, dtype, pe, put) = match *op {
        Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe } => {
            (dst, src, dst_stride, src_stride, count, dtype, pe, true)
        }
        Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe } => {
            (dst, src, dst_stride, src_stride, count, dtype, pe, false)
        }
        _ => unreachable!("{op} is not strided"),
    };
    let size = dtype.size();
    let element = move |span: Span, stride: u32, index: u32| Span {
        start: span.start + index as usize * stride as usize * size,
        len: size,
        ..span
    };
    (0..count).map(move |index| {
        let (dst, src) = (element(dst, dst_stride, index), element(src, src_stride, index));
        if put {
            Op::Put { dst, src, dtype, pe, nbi: false, signal: None }
        } else {
            Op::Get { dst, src, dtype, pe, nbi: false }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onesided::DType;
    use onesided::backend::AllocId;

    #[test]
    fn each_element_is_a_transfer_of_its_own() {
        let span = |alloc, start, len| Span { alloc: AllocId(alloc), start, len };
        let (dst, src) = (span(0, 8, 36), span(1, 0, 20));
        let (dtype, pe) = (DType::U32, 3);
        let put = Op::IPut { dst, src, dst_stride: 4, src_stride: 2, count: 3, dtype, pe };
        let puts: Vec<Op> = elements(&put).collect();
        assert_eq!(puts[2], Op::Put { dst: span(0, 40, 4), src: span(1, 16, 4), dtype, pe, nbi: false, signal: None });
        assert_eq!(puts.len(), 3);
        let wide = Op::IPut { dst, src, dst_stride: 1 << 30, src_stride: 1, count: 1, dtype, pe };
        assert!(is_wide(&wide) && !is_wide(&put));
        let get = Op::IGet { dst: src, src: dst, dst_stride: 2, src_stride: 4, count: 1, dtype, pe };
        let gets: Vec<Op> = elements(&get).collect();
        assert_eq!(gets, [Op::Get { dst: span(1, 0, 4), src: span(0, 8, 4), dtype, pe, nbi: false }]);
    }
}
