// Stands in for CUDA's header of this name: the types that NVSHMEM's host headers mention, and nothing else.
#pragma once
#define __host__
#define __device__
typedef struct CUstream_st *cudaStream_t;
struct dim3 {
    unsigned int x, y, z;
};
struct double2 {
    double x, y;
};
