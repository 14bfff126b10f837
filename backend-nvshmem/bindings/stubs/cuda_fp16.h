// Stands in for CUDA's header of this name: the type that NVSHMEM's host headers mention, and nothing else.
#pragma once
struct __half {
    unsigned short bits;
};
typedef __half half;
