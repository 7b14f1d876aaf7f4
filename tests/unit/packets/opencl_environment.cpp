// The same PoCL for every test program.
#include "unit/opencl/opencl_environment.cpp"
