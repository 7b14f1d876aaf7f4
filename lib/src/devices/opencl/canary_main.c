// Runs kernels on an OpenCL device and checks their results, in a process of its own: a driver that compiles them wrong
// may crash, or never end. The library embeds this program and runs it from memory (canary.cpp).
//
//   canary LIBRARY DEVICE OPTIONS SOURCE LANES WORDS STATE [KERNEL DIGEST]...
//
// LIBRARY: the OpenCL library to load; DEVICE: counts the devices of all platforms; SOURCE: the text of the kernels;
// each runs as one block of LANES lanes and leaves WORDS words, STATE being the first, whose digest must be DIGEST.
// Writes "right" to stdout, or nothing.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { wall_s = 300, cpu_s_of_a_kernel = 20, most_devices = 64, most_words = 64 };

#define CALL(NAME) ((__typeof__(&NAME))dlsym(opencl, #NAME))

struct job {
    const char *options, *source;
    size_t lanes, words;
    cl_uint state;
};

static void* opencl;

static cl_device_id find_device(unsigned index)
{
    cl_platform_id platforms[most_devices];
    cl_uint platform_count = 0;

    if (CALL(clGetPlatformIDs)(most_devices, platforms, &platform_count))
        return NULL;
    for (cl_uint at = 0; at < platform_count && at < most_devices; ++at) {
        cl_device_id devices[most_devices];
        cl_uint count = 0;
        if (CALL(clGetDeviceIDs)(platforms[at], CL_DEVICE_TYPE_ALL, most_devices, devices, &count))
            continue;
        if (index < count)
            return index < most_devices ? devices[index] : NULL;
        index -= count;
    }
    return NULL;
}

static cl_uint digest(const cl_uint* words, size_t count)
{
    cl_uint sum = 0;

    for (size_t at = 0; at < count; ++at)
        sum = sum * 31u + words[at];
    return sum;
}

/** Limits CPU time, not wall-clock time, so that a busy machine fails no driver. */
static void allow_cpu(long seconds)
{
    struct itimerval bound = {.it_value = {.tv_sec = seconds}};

    setitimer(ITIMER_PROF, &bound, NULL);
}

static int runs_right(cl_context context, cl_device_id device, cl_program program, const struct job* job,
                      const char* name, cl_uint wanted)
{
    cl_int status = 0;
    size_t lanes = job->lanes;
    cl_kernel kernel = CALL(clCreateKernel)(program, name, &status);
    cl_command_queue queue = CALL(clCreateCommandQueueWithProperties)(context, device, NULL, &status);
    cl_uint* world = CALL(clSVMAlloc)(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS,
                                      job->words * sizeof *world, 0);

    if (!kernel || !queue || !world)
        return 0;
    allow_cpu(cpu_s_of_a_kernel);
    memset(world, 0, job->words * sizeof *world);
    world[0] = job->state;
    return CALL(clSetKernelArgSVMPointer)(kernel, 0, world) == CL_SUCCESS &&
           CALL(clEnqueueNDRangeKernel)(queue, kernel, 1, NULL, &lanes, &lanes, 0, NULL, NULL) == CL_SUCCESS &&
           CALL(clFinish)(queue) == CL_SUCCESS && digest(world, job->words) == wanted;
}

static int all_run_right(cl_device_id device, const struct job* job, char** kernels)
{
    cl_int status = 0;
    const char* source = job->source;
    cl_context context = CALL(clCreateContext)(NULL, 1, &device, NULL, NULL, &status);
    cl_program program = context ? CALL(clCreateProgramWithSource)(context, 1, &source, NULL, &status) : NULL;

    if (!program || CALL(clBuildProgram)(program, 1, &device, job->options, NULL, NULL) != CL_SUCCESS)
        return 0;
    for (; kernels[0] && kernels[1]; kernels += 2)
        if (!runs_right(context, device, program, job, kernels[0], (cl_uint)strtoul(kernels[1], NULL, 10)))
            return 0;
    return 1;
}

/** Sets all limits. Unblocks their signals, which the application may have blocked or ignored. */
static void bound_everything(void)
{
    sigset_t none;

    signal(SIGALRM, SIG_DFL);
    signal(SIGPROF, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(wall_s);
    allow_cpu(3 * cpu_s_of_a_kernel);
}

int main(int count, char** words)
{
    if (count < 8)
        return 1;
    bound_everything();
    struct job job = {.options = words[3],
                      .source = words[4],
                      .lanes = strtoul(words[5], NULL, 10),
                      .words = strtoul(words[6], NULL, 10),
                      .state = (cl_uint)strtoul(words[7], NULL, 10)};
    opencl = dlopen(words[1], RTLD_NOW);
    cl_device_id device = opencl ? find_device((unsigned)strtoul(words[2], NULL, 10)) : NULL;
    int right = device && all_run_right(device, &job, words + 8);
    if (right && write(STDOUT_FILENO, "right", 5) != 5)
        _exit(1);
    _exit(!right); // without running the driver's destructors
}
