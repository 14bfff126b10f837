//! Tiles of tensors on a GPU, against a model: where each element lies in shared memory, what lies outside, and what a store leaves alone. The simulator
//! has the same rules; of some of them, CUDA's documentation says little.

use onesided::{
    Backend, Element, Fill, Grid, Kernel, Pe, Result, Source, Stream, Swizzle, SymmetricBuf, TensorLayout, args,
    expect_eq,
};
use onesided_nvshmem::{Nvshmem, driver};

use super::Test;

pub(super) const TESTS: [(&str, Test); 1] = [("tiles_lie_where_the_model_says", on_a_gpu)];

/// Loads a tile into shared memory and shows that (0), or stores (1) or adds (2) what is given as a tile.
const TEXT: &str = r#"
struct alignas(64) CUtensorMap { unsigned long long words[16]; };
__device__ unsigned shared(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }
extern "C" __global__ void tile(const __grid_constant__ CUtensorMap map, int what, int x, int y, unsigned shift, unsigned bytes, unsigned *words, int count) {
    __shared__ alignas(1024) unsigned char room[24576];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned *mine = (unsigned *)(room + shift);
    for (int i = threadIdx.x; i < count; i += blockDim.x) mine[i] = words[i];
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&barrier)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && what == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&barrier)), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared(mine)), "l"(&map), "r"(x), "r"(y), "r"(shared(&barrier)) : "memory");
    }
    if (threadIdx.x == 0 && what == 1) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(shared(mine)) : "memory");
    if (threadIdx.x == 0 && what == 2) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(shared(mine)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    if (what != 0) return;
    __syncthreads();
    unsigned done = 0; // not for ever: other bytes may have come than were announced
    for (int i = 0; i < 1000000 && !done; i++)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(shared(&barrier)) : "memory");
    for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = done ? mine[i] : 0xdead;
}
"#;

/// A matrix of words, a tile of it, and where that begins.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 2],
    stride: usize,
    tile: [usize; 2],
    step: usize,
    swizzle: Swizzle,
    fill: Fill,
    corner: [i32; 2],
    /// Bytes from where the pattern of a swizzle begins.
    shift: usize,
}

const PLAIN: Case = Case {
    sizes: [37, 21],
    stride: 160,
    tile: [8, 8],
    step: 1,
    swizzle: Swizzle::None,
    fill: Fill::Zeros,
    corner: [4, 3],
    shift: 0,
};

/// What is in shared memory where no tile is.
const GAP: u32 = 0xabab_abab;

impl Case {
    fn layout(&self) -> TensorLayout {
        let layout = TensorLayout::new(&self.sizes, &self.tile).strides(&[self.stride]);
        layout.steps(&[1, self.step]).swizzle(self.swizzle).fill(self.fill)
    }

    fn pitch(&self) -> usize {
        (4 * self.tile[0]).max(self.swizzle.bytes())
    }

    fn rows(&self) -> usize {
        self.tile[1].div_ceil(self.step)
    }

    /// The words of shared memory that the tile takes.
    fn words(&self) -> usize {
        self.rows() * self.pitch() / 4
    }

    /// Each element: its word from the tile's first on, and its word in the matrix if it lies in the tensor.
    fn elements(&self, columns: usize) -> Vec<(usize, Option<usize>)> {
        let mut all = Vec::new();
        for row in 0..self.rows() {
            for column in 0..self.tile[0] {
                let x = i64::from(self.corner[0]) + column as i64;
                let y = i64::from(self.corner[1]) + (row * self.step) as i64;
                let is_inside = (0..columns as i64).contains(&x) && (0..self.sizes[1] as i64).contains(&y);
                let from = is_inside.then(|| y as usize * self.stride / 4 + x as usize);
                let plain = self.shift + row * self.pitch() + 4 * column;
                let (line, unit) = (plain / 128, plain / 16 % 8);
                let unit = unit ^ (line % (self.swizzle.bytes() / 16).max(1));
                all.push(((line * 128 + unit * 16 + plain % 16 - self.shift) / 4, from));
            }
        }
        all
    }
}

fn on_a_gpu(pe: &Pe<Nvshmem>) -> Result<()> {
    if let Some(old) = driver().ok().and_then(|driver| driver.architectures.into_iter().find(|&gpu| gpu < 90)) {
        println!("not run: tensor maps need sm_90, and a GPU is sm_{old}");
        return Ok(());
    }
    tiles(pe, &Source::cuda("tile.cu", TEXT))
}

/// On either backend.
fn tiles<B: Backend>(pe: &Pe<B>, source: &Source) -> Result<()> {
    let module = pe.module(source)?;
    let (kernel, stream) = (module.kernel("tile")?, pe.stream()?);
    let on = (pe, &kernel, &stream);
    let swizzles = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];
    for swizzle in swizzles {
        let widest = if swizzle == Swizzle::None { 16 } else { swizzle.bytes() / 4 };
        let whole = Case { swizzle, tile: [widest, 12], ..PLAIN };
        for case in
            [whole, Case { shift: 128 * 3, ..whole }, Case { tile: [4, 12], ..whole }, Case { step: 3, ..whole }]
        {
            for corner in [[4, 3], [-4, -2], [32, 15], [40, 0]] {
                load::<u32, B>(on, Case { corner, ..case })?;
                load::<f32, B>(on, Case { corner, fill: Fill::NaN, ..case })?;
            }
            for corner in [[4, 3], [32, 15], [40, 0]] {
                store(on, Case { corner, ..case })?;
            }
        }
    }
    Ok(())
}

/// Who launches what, and where.
type On<'a, B> = (&'a Pe<B>, &'a Kernel<'a, B>, &'a Stream<B>);

fn launch<T: Element, B: Backend>(
    (pe, kernel, stream): On<'_, B>,
    case: &Case,
    what: i32,
    (matrix, words): (&SymmetricBuf<T>, &SymmetricBuf<u32>),
) -> Result<()> {
    let map = case.layout().map(matrix)?;
    let ([x, y], shift) = (case.corner, case.shift as u32);
    let (bytes, count) = (map.tile_bytes() as u32, case.words() as i32);
    let arguments = args![&map, what, x, y, shift, bytes, words, count];
    // SAFETY: the arguments have the kernel's types, and it stays inside the buffers.
    unsafe { pe.on(stream).launch(kernel, &Grid::new(1, 64), arguments)? };
    pe.synchronize(stream)
}

fn load<T: Element, B: Backend>(on: On<'_, B>, case: Case) -> Result<()> {
    let pe = on.0;
    let matrix = pe.alloc::<T>(case.stride / 4 * case.sizes[1])?;
    let words = pe.alloc::<u32>(case.words())?;
    let values: Vec<T> = (0..matrix.len()).map(|at| T::from_bits64(at as u64 + 1)).collect();
    pe.write(&matrix, &values)?;
    pe.write(&words, &vec![GAP; case.words()])?;
    launch(on, &case, 0, (&matrix, &words))?;
    let outside = if case.fill == Fill::NaN { 0x7ff7_7ff7 } else { 0 };
    let mut expected = vec![GAP; case.words()];
    for (to, from) in case.elements(case.sizes[0]) {
        expected[to] = from.map_or(outside, |from| from as u32 + 1);
    }
    expect_eq(pe.read(&words)?, expected, &format!("a tile in shared memory: {case:?}"))?;
    pe.free(words)?;
    pe.free(matrix)
}

/// A store, and then an addition to what it has left.
fn store<B: Backend>(on: On<'_, B>, case: Case) -> Result<()> {
    let pe = on.0;
    let matrix = pe.alloc_zeroed::<u32>(case.stride / 4 * case.sizes[1])?;
    let words = pe.alloc::<u32>(case.words())?;
    pe.write(&words, &(1..=case.words() as u32).collect::<Vec<_>>())?;
    let mut expected = vec![0; matrix.len()];
    for (what, times) in [(1, 1), (2, 2)] {
        launch(on, &case, what, (&matrix, &words))?;
        // Measured: a store takes rows to be units of 16 bytes, and overwrites what lies behind the end in the last.
        for (from, to) in case.elements(case.sizes[0].next_multiple_of(4)) {
            if let Some(to) = to {
                expected[to] = times * (from as u32 + 1);
            }
        }
        expect_eq(pe.read(&matrix)?, expected.clone(), &format!("stored and added {what}: {case:?}"))?;
    }
    pe.free(words)?;
    pe.free(matrix)
}
