// Stands in for CUDA's header of this name: the type that NVSHMEM's host headers mention, and nothing else.
#pragma once
struct __nv_bfloat16 {
    unsigned short bits;
};
