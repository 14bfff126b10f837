// A product of matrices with fragments of CUDA's `nvcuda::wmma`, whose elements are scaled where they are: each warp makes one tile.
#include <mma.h>

using namespace nvcuda;

template <bool IN_ROWS>
struct Choice {
    using Layout = wmma::row_major;
};
template <>
struct Choice<false> {
    using Layout = wmma::col_major;
};

template <int M, int N, int K, typename Factor, typename Sum, bool IN_ROWS>
__device__ void product(Sum *d, const Factor *a, const Factor *b, int columns, int depth, Sum scale) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, across = columns / N;
    const int row = warp / across * M, column = warp % across * N;
    // Of `b`, rows or columns lie one behind the other.
    using Layout = typename Choice<IN_ROWS>::Layout;
    wmma::fragment<wmma::matrix_a, M, N, K, Factor, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, Factor, Layout> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::fill_fragment(sum, (Sum)0);
    for (int k = 0; k < depth; k += K) {
        wmma::load_matrix_sync(left, a + row * depth + k, depth);
        wmma::load_matrix_sync(right, IN_ROWS ? b + k * columns + column : b + column * depth + k, IN_ROWS ? columns : depth);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= scale;
    wmma::store_matrix_sync(d + row * columns + column, sum, columns, wmma::mem_row_major);
}

extern "C" __global__ void of_halves(float *d, const half *a, const half *b, int columns, int depth) {
    product<16, 16, 16, half, float, true>(d, a, b, columns, depth, 2);
}

extern "C" __global__ void of_wide_halves(float *d, const half *a, const half *b, int columns, int depth) {
    product<8, 32, 16, half, float, false>(d, a, b, columns, depth, 2);
}

extern "C" __global__ void of_bytes(int *d, const signed char *a, const signed char *b, int columns, int depth) {
    product<32, 8, 16, signed char, int, false>(d, a, b, columns, depth, 3);
}

extern "C" __global__ void of_doubles(double *d, const double *a, const double *b, int columns, int depth) {
    product<8, 8, 4, double, double, true>(d, a, b, columns, depth, 0.5);
}
