// Stands in for CUDA's header of this name: the types that NVSHMEM's host headers mention, and nothing else.
#pragma once
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
