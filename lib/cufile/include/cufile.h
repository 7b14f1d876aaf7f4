/*
 * cufile.h: the cuFile API, as Weftio's libcufile.so.0 has it. C99 and C++.
 *
 * Written from the calls of public programs (fio, NIXL, KvikIO, hipFile, LMCache) and from public reference pages; the
 * vendor's header was not read. Programs that were compiled with the vendor's header run with this library, as far as
 * layouts and values are public. What is not certain is marked "assumed".
 *
 * Threads: every function may be called from any thread, together.
 * Processes: a child of fork() begins without an open driver; handles, buffers and batches of its parent are unknown
 * there.
 * Errors: functions that return CUfileError_t put a CUfileOpError into `err`. `cu_err` is 0 always.
 */
#ifndef WEFTIO_CUFILE_H
#define WEFTIO_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

/* CUDA's own header where the compiler has it, else types of the same layout. Nothing of CUDA is needed. */
#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define WEFTIO_CUFILE_HAS_CUDA_H 1
#endif
#endif
#ifndef WEFTIO_CUFILE_HAS_CUDA_H
typedef int CUresult;
typedef struct CUstream_st* CUstream;
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct sockaddr;
struct timespec;

/* Errors. ------------------------------------------------------------------------------------------------------- */

#define CUFILEOP_BASE_ERR 5000

/* The library returns those that a function's comment names; the others are here so that programs compile. */
typedef enum CUfileOpError {
    CU_FILE_SUCCESS = 0,
    CU_FILE_DRIVER_NOT_INITIALIZED = CUFILEOP_BASE_ERR + 1,
    CU_FILE_DRIVER_INVALID_PROPS = CUFILEOP_BASE_ERR + 2,
    CU_FILE_DRIVER_UNSUPPORTED_LIMIT = CUFILEOP_BASE_ERR + 3,
    CU_FILE_DRIVER_VERSION_MISMATCH = CUFILEOP_BASE_ERR + 4,
    CU_FILE_DRIVER_VERSION_READ_ERROR = CUFILEOP_BASE_ERR + 5,
    CU_FILE_DRIVER_CLOSING = CUFILEOP_BASE_ERR + 6,
    CU_FILE_PLATFORM_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 7,
    CU_FILE_IO_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 8,
    CU_FILE_DEVICE_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 9,
    CU_FILE_NVFS_DRIVER_ERROR = CUFILEOP_BASE_ERR + 10,
    CU_FILE_CUDA_DRIVER_ERROR = CUFILEOP_BASE_ERR + 11,
    CU_FILE_CUDA_POINTER_INVALID = CUFILEOP_BASE_ERR + 12,
    CU_FILE_CUDA_MEMORY_TYPE_INVALID = CUFILEOP_BASE_ERR + 13,
    CU_FILE_CUDA_POINTER_RANGE_ERROR = CUFILEOP_BASE_ERR + 14,
    CU_FILE_CUDA_CONTEXT_MISMATCH = CUFILEOP_BASE_ERR + 15,
    CU_FILE_INVALID_MAPPING_SIZE = CUFILEOP_BASE_ERR + 16,
    CU_FILE_INVALID_MAPPING_RANGE = CUFILEOP_BASE_ERR + 17,
    CU_FILE_INVALID_FILE_TYPE = CUFILEOP_BASE_ERR + 18,
    CU_FILE_INVALID_FILE_OPEN_FLAG = CUFILEOP_BASE_ERR + 19,
    CU_FILE_DIO_NOT_SET = CUFILEOP_BASE_ERR + 20,
    CU_FILE_INVALID_VALUE = CUFILEOP_BASE_ERR + 22,
    CU_FILE_MEMORY_ALREADY_REGISTERED = CUFILEOP_BASE_ERR + 23,
    CU_FILE_MEMORY_NOT_REGISTERED = CUFILEOP_BASE_ERR + 24,
    CU_FILE_PERMISSION_DENIED = CUFILEOP_BASE_ERR + 25,
    CU_FILE_DRIVER_ALREADY_OPEN = CUFILEOP_BASE_ERR + 26,
    CU_FILE_HANDLE_NOT_REGISTERED = CUFILEOP_BASE_ERR + 27,
    CU_FILE_HANDLE_ALREADY_REGISTERED = CUFILEOP_BASE_ERR + 28,
    CU_FILE_DEVICE_NOT_FOUND = CUFILEOP_BASE_ERR + 29,
    CU_FILE_INTERNAL_ERROR = CUFILEOP_BASE_ERR + 30,
    CU_FILE_GETNEWFD_FAILED = CUFILEOP_BASE_ERR + 31,
    CU_FILE_NVFS_SETUP_ERROR = CUFILEOP_BASE_ERR + 33,
    CU_FILE_IO_DISABLED = CUFILEOP_BASE_ERR + 34,
    CU_FILE_BATCH_SUBMIT_FAILED = CUFILEOP_BASE_ERR + 35,
    CU_FILE_GPU_MEMORY_PINNING_FAILED = CUFILEOP_BASE_ERR + 36,
    CU_FILE_BATCH_FULL = CUFILEOP_BASE_ERR + 37,
    CU_FILE_ASYNC_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 38,
    /* Assumed from here on: the names are public, their order is from memory of it. */
    CU_FILE_INTERNAL_BATCH_SETUP_ERROR = CUFILEOP_BASE_ERR + 39,
    CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR = CUFILEOP_BASE_ERR + 40,
    CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR = CUFILEOP_BASE_ERR + 41,
    CU_FILE_INTERNAL_BATCH_CANCEL_ERROR = CUFILEOP_BASE_ERR + 42,
    CU_FILE_NOMEM_ERROR = CUFILEOP_BASE_ERR + 43,
    CU_FILE_IO_ERROR = CUFILEOP_BASE_ERR + 44,
    CU_FILE_INTERNAL_BUF_REGISTER_ERROR = CUFILEOP_BASE_ERR + 45,
    CU_FILE_HASH_OPR_ERROR = CUFILEOP_BASE_ERR + 46,
    CU_FILE_INVALID_CONTEXT_ERROR = CUFILEOP_BASE_ERR + 47,
    CU_FILE_NVFS_INTERNAL_DRIVER_ERROR = CUFILEOP_BASE_ERR + 48,
    CU_FILE_BATCH_NOCOMPAT_ERROR = CUFILEOP_BASE_ERR + 49,
    CU_FILE_IO_MAX_ERROR = CUFILEOP_BASE_ERR + 50
} CUfileOpError;

/* One sentence; "unknown cuFile error" for a number that is none. */
static inline const char* cufileop_status_error(CUfileOpError status)
{
    switch (status) {
        case CU_FILE_SUCCESS: return "success";
        case CU_FILE_DRIVER_NOT_INITIALIZED: return "the driver is not open";
        case CU_FILE_DRIVER_INVALID_PROPS: return "invalid property";
        case CU_FILE_DRIVER_UNSUPPORTED_LIMIT: return "the limit is out of range";
        case CU_FILE_DRIVER_VERSION_MISMATCH: return "version mismatch between library and kernel driver";
        case CU_FILE_DRIVER_VERSION_READ_ERROR: return "the version of the kernel driver cannot be read";
        case CU_FILE_DRIVER_CLOSING: return "the driver is closing";
        case CU_FILE_PLATFORM_NOT_SUPPORTED: return "the platform is not supported";
        case CU_FILE_IO_NOT_SUPPORTED: return "the I/O is not supported on this file, or would fall back";
        case CU_FILE_DEVICE_NOT_SUPPORTED: return "the GPU is not supported";
        case CU_FILE_NVFS_DRIVER_ERROR: return "error of the kernel driver";
        case CU_FILE_CUDA_DRIVER_ERROR: return "error of the CUDA driver";
        case CU_FILE_CUDA_POINTER_INVALID: return "invalid device pointer";
        case CU_FILE_CUDA_MEMORY_TYPE_INVALID: return "invalid type of memory";
        case CU_FILE_CUDA_POINTER_RANGE_ERROR: return "the range exceeds the allocation";
        case CU_FILE_CUDA_CONTEXT_MISMATCH: return "the pointer belongs to another CUDA context";
        case CU_FILE_INVALID_MAPPING_SIZE: return "the size exceeds the registered buffer";
        case CU_FILE_INVALID_MAPPING_RANGE: return "the range exceeds the registered buffer";
        case CU_FILE_INVALID_FILE_TYPE: return "neither a regular file nor a block device";
        case CU_FILE_INVALID_FILE_OPEN_FLAG: return "the file was opened with a flag that is not supported";
        case CU_FILE_DIO_NOT_SET: return "the file was not opened with O_DIRECT";
        case CU_FILE_INVALID_VALUE: return "invalid argument";
        case CU_FILE_MEMORY_ALREADY_REGISTERED: return "the memory is registered already";
        case CU_FILE_MEMORY_NOT_REGISTERED: return "the memory is not registered";
        case CU_FILE_PERMISSION_DENIED: return "permission denied";
        case CU_FILE_DRIVER_ALREADY_OPEN: return "the driver is open already";
        case CU_FILE_HANDLE_NOT_REGISTERED: return "the file handle is not registered";
        case CU_FILE_HANDLE_ALREADY_REGISTERED: return "the file descriptor is registered already";
        case CU_FILE_DEVICE_NOT_FOUND: return "no such GPU";
        case CU_FILE_INTERNAL_ERROR: return "internal error";
        case CU_FILE_GETNEWFD_FAILED: return "no new file descriptor";
        case CU_FILE_NVFS_SETUP_ERROR: return "the kernel driver cannot be set up";
        case CU_FILE_IO_DISABLED: return "I/O is disabled";
        case CU_FILE_BATCH_SUBMIT_FAILED: return "the batch cannot be submitted";
        case CU_FILE_GPU_MEMORY_PINNING_FAILED: return "the memory of the GPU cannot be pinned";
        case CU_FILE_BATCH_FULL: return "the batch has no room";
        case CU_FILE_ASYNC_NOT_SUPPORTED: return "stream-ordered I/O is not supported";
        case CU_FILE_INTERNAL_BATCH_SETUP_ERROR: return "internal error: set-up of a batch";
        case CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR: return "internal error: submission of a batch";
        case CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR: return "internal error: status of a batch";
        case CU_FILE_INTERNAL_BATCH_CANCEL_ERROR: return "internal error: cancellation of a batch";
        case CU_FILE_NOMEM_ERROR: return "out of memory";
        case CU_FILE_IO_ERROR: return "I/O error";
        case CU_FILE_INTERNAL_BUF_REGISTER_ERROR: return "internal error: registration of a buffer";
        case CU_FILE_HASH_OPR_ERROR: return "internal error: table of handles or buffers";
        case CU_FILE_INVALID_CONTEXT_ERROR: return "invalid CUDA context";
        case CU_FILE_NVFS_INTERNAL_DRIVER_ERROR: return "internal error of the kernel driver";
        case CU_FILE_BATCH_NOCOMPAT_ERROR: return "batches are not supported in compatibility mode";
        case CU_FILE_IO_MAX_ERROR: break;
    }
    return "unknown cuFile error";
}

typedef struct CUfileError {
    CUfileOpError err;
    CUresult cu_err;
} CUfileError_t;

#define IS_CUFILE_ERR(err) (abs((int)(err)) > CUFILEOP_BASE_ERR)
#define CUFILE_ERRSTR(err) cufileop_status_error((CUfileOpError)abs((int)(err)))
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

/* The driver. --------------------------------------------------------------------------------------------------- */

/* Bits of CUfileDrvProps_t.nvfs.dstatusflags. The library sets none of them: no file system has a direct way here. */
typedef enum CUfileDriverStatusFlags {
    CU_FILE_LUSTRE_SUPPORTED = 0,
    CU_FILE_WEKAFS_SUPPORTED = 1,
    CU_FILE_NFS_SUPPORTED = 2,
    CU_FILE_GPFS_SUPPORTED = 3,
    CU_FILE_NVME_SUPPORTED = 4,
    CU_FILE_NVMEOF_SUPPORTED = 5,
    CU_FILE_SCSI_SUPPORTED = 6,
    CU_FILE_SCALEFLUX_CSD_SUPPORTED = 7,
    CU_FILE_NVMESH_SUPPORTED = 8,
    CU_FILE_BEEGFS_SUPPORTED = 9
} CUfileDriverStatusFlags_t;

/* Bits of CUfileDrvProps_t.nvfs.dcontrolflags. */
typedef enum CUfileDriverControlFlags {
    CU_FILE_USE_POLL_MODE = 0,
    CU_FILE_ALLOW_COMPAT_MODE = 1
} CUfileDriverControlFlags_t;

/* Bits of CUfileDrvProps_t.fflags. */
typedef enum CUfileFeatureFlags {
    CU_FILE_DYN_ROUTING_SUPPORTED = 0,
    CU_FILE_BATCH_IO_SUPPORTED = 1,
    CU_FILE_STREAMS_SUPPORTED = 2,
    CU_FILE_PARALLEL_IO_SUPPORTED = 3
} CUfileFeatureFlags_t;

typedef struct CUfileDrvProps {
    struct {
        unsigned int major_version; /* 0: no nvidia-fs.ko is used */
        unsigned int minor_version;
        size_t poll_thresh_size;   /* KiB */
        size_t max_direct_io_size; /* KiB */
        unsigned int dstatusflags;
        unsigned int dcontrolflags;
    } nvfs;
    unsigned int fflags;
    unsigned int max_device_cache_size;      /* KiB */
    unsigned int per_buffer_cache_size;      /* KiB */
    unsigned int max_device_pinned_mem_size; /* KiB */
    unsigned int max_batch_io_size;          /* operations */
    unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

/*
 * Opens the driver, or counts another user of it. Every other function that needs it opens it too, as one user.
 * Errors: CU_FILE_INVALID_VALUE a parameter or the configuration file is bad; CU_FILE_IO_NOT_SUPPORTED
 * WEFTIO_FILE_STRICT=1 is set and io_uring is refused; CU_FILE_NOMEM_ERROR.
 */
CUfileError_t cuFileDriverOpen(void);
/*
 * The last user closes the driver. That waits for synchronous calls, cancels batches, and ends every registration.
 * Errors: CU_FILE_DRIVER_NOT_INITIALIZED it is not open.
 */
CUfileError_t cuFileDriverClose(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2
/* Users of the driver; 0: it is closed. */
long cuFileUseCount(void);

/* Errors: CU_FILE_INVALID_VALUE `props` is null. Opens the driver. */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t* props);
/*
 * Kept and reported, without an effect: no kernel driver polls here. Sizes in KiB.
 * Errors: CU_FILE_DRIVER_UNSUPPORTED_LIMIT no multiple of 4, or outside what cuFileGetParameterMinMaxValue tells.
 */
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size);
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size);
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);

/* Weftio's version, as "0.1.0". The library of NVIDIA has no such symbol. */
extern const char weftio_cufile_version[];

/* 1000 * major + 10 * minor of the API: 1140. Errors: CU_FILE_INVALID_VALUE `version` is null. */
CUfileError_t cuFileGetVersion(int* version);
/*
 * Size of BAR1 of the GPU with that index in order of PCI addresses (CUDA_DEVICE_ORDER=PCI_BUS_ID).
 * Errors: CU_FILE_DEVICE_NOT_FOUND; CU_FILE_INVALID_VALUE.
 */
CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t* barSize);

/* Files. -------------------------------------------------------------------------------------------------------- */

typedef enum CUfileFileHandleType {
    CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
    CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3
} CUfileFileHandleType;

typedef struct sockaddr sockaddr_t;

typedef struct cufileRDMAInfo {
    int version;
    int desc_len;
    const char* desc_str;
} cufileRDMAInfo_t;

/* File systems in user space. Declared so that programs compile; not supported. */
typedef struct CUfileFSOps {
    const char* (*fs_type)(void* handle);
    int (*getRDMADeviceList)(void* handle, sockaddr_t** hostaddrs);
    int (*getRDMADevicePriority)(void* handle, char*, size_t, off_t, sockaddr_t* hostaddr);
    ssize_t (*read)(void* handle, char*, size_t, off_t, cufileRDMAInfo_t*);
    ssize_t (*write)(void* handle, const char*, size_t, off_t, cufileRDMAInfo_t*);
} CUfileFSOps_t;

typedef struct CUfileDescr_t {
    CUfileFileHandleType type;
    union {
        int fd;
        void* handle;
    } handle;
    const CUfileFSOps_t* fs_ops;
} CUfileDescr_t;

typedef void* CUfileHandle_t;

/*
 * Registers an open descriptor of any file system. It stays the caller's and must stay open until it is deregistered.
 * Errors: CU_FILE_INVALID_VALUE a null pointer, or a descriptor that is not open;
 * CU_FILE_INVALID_FILE_TYPE neither a regular file nor a block device; CU_FILE_INVALID_FILE_OPEN_FLAG opened with
 * O_PATH, or for writing with O_APPEND; CU_FILE_HANDLE_ALREADY_REGISTERED; CU_FILE_IO_NOT_SUPPORTED another type than
 * CU_FILE_HANDLE_TYPE_OPAQUE_FD.
 */
CUfileError_t cuFileHandleRegister(CUfileHandle_t* fh, CUfileDescr_t* descr);
/*
 * Waits for synchronous calls on the handle, and for those of the null stream without CUDA. Operations of batches and
 * of CUDA streams go on, and the descriptor must stay open for them. A handle that is unknown is ignored.
 */
void cuFileHandleDeregister(CUfileHandle_t fh);

/* Flags of cuFileBufRegister, assumed. They are ignored: RDMA in user space is not supported. */
#define CU_FILE_RDMA_REGISTER 1
#define CU_FILE_RDMA_RELAXED_ORDERING (1 << 1)

/*
 * Registers memory of the host or of a GPU. Reads and writes need no registration.
 * Errors: CU_FILE_INVALID_VALUE null or 0 bytes; CU_FILE_MEMORY_ALREADY_REGISTERED registered memory begins there;
 * CU_FILE_CUDA_POINTER_RANGE_ERROR a CUDA allocation is shorter.
 */
CUfileError_t cuFileBufRegister(const void* bufPtr_base, size_t length, int flags);
/* Errors: CU_FILE_MEMORY_NOT_REGISTERED no registered memory begins there. */
CUfileError_t cuFileBufDeregister(const void* bufPtr_base);

/*
 * Reads or writes `size` bytes at `file_offset`, to or from bufPtr_base + bufPtr_offset. Blocks. Any alignment.
 * Returns the bytes; fewer than `size`: the file ends, or an error follows them, which the next call gets.
 * Errors: -1, and errno is set; or a negative CUfileOpError: CU_FILE_HANDLE_NOT_REGISTERED, CU_FILE_INVALID_VALUE
 * a null pointer or a negative offset, CU_FILE_INVALID_MAPPING_RANGE the range exceeds the registered memory in
 * which bufPtr_base lies, CU_FILE_IO_NOT_SUPPORTED it would fall back and WEFTIO_FILE_STRICT=1 is set.
 */
ssize_t cuFileRead(CUfileHandle_t fh, void* bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset);
ssize_t cuFileWrite(CUfileHandle_t fh, const void* bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset);

/* Batches. ------------------------------------------------------------------------------------------------------ */

typedef enum CUfileOpcode { CUFILE_READ = 0, CUFILE_WRITE = 1 } CUfileOpcode_t;

typedef enum CUFILEStatus_enum {
    CUFILE_WAITING = 0x01,
    CUFILE_PENDING = 0x02,
    CUFILE_INVALID = 0x04,
    CUFILE_CANCELED = 0x08,
    CUFILE_COMPLETE = 0x10,
    CUFILE_TIMEOUT = 0x20,
    CUFILE_FAILED = 0x40
} CUfileStatus_t;

typedef enum cufileBatchMode { CUFILE_BATCH = 1 } CUfileBatchMode_t;

typedef struct CUfileIOParams {
    CUfileBatchMode_t mode;
    union {
        struct {
            void* devPtr_base;
            off_t file_offset;
            off_t devPtr_offset;
            size_t size;
        } batch;
    } u;
    CUfileHandle_t fh;
    CUfileOpcode_t opcode;
    void* cookie;
} CUfileIOParams_t;

typedef struct CUfileIOEvents {
    void* cookie;
    CUfileStatus_t status; /* CUFILE_COMPLETE, CUFILE_FAILED or CUFILE_CANCELED */
    size_t ret;            /* bytes; with CUFILE_FAILED -errno, as (size_t)-EIO */
} CUfileIOEvents_t;

typedef void* CUfileBatchHandle_t;

/*
 * Makes a batch of up to `nr` operations whose events were not taken: 1 to 65536.
 * Errors: CU_FILE_INVALID_VALUE; CU_FILE_NOMEM_ERROR.
 */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t* batch_idp, unsigned nr);
/*
 * Begins all operations, or none. `flags` has no effect.
 * Errors: CU_FILE_BATCH_FULL; CU_FILE_HANDLE_NOT_REGISTERED; CU_FILE_INVALID_MAPPING_RANGE; CU_FILE_INVALID_VALUE.
 */
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr, CUfileIOParams_t* iocbp,
                                  unsigned int flags);
/*
 * Takes events, each once. Waits until there are `min_nr`, `timeout` is over (null: without end), or nothing is in
 * flight. `nr`: room in `iocbp`, then the number of events; fewer than `min_nr` is no error.
 * Errors: CU_FILE_INVALID_VALUE.
 */
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp, unsigned min_nr, unsigned* nr,
                                     CUfileIOEvents_t* iocbp, struct timespec* timeout);
/*
 * Cancels operations in flight, and waits for those that cannot be canceled. No event that was not taken comes any
 * more, and the batch may be submitted to again. Errors: CU_FILE_INVALID_VALUE.
 */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp);
/* Cancels, and waits for what cannot be canceled. */
void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp);

/* Streams. ------------------------------------------------------------------------------------------------------ */

/* Hints of cuFileStreamRegister. They are ignored: arguments are always read at execution. */
#define CU_FILE_STREAM_FIXED_BUF_OFFSET 1
#define CU_FILE_STREAM_FIXED_FILE_OFFSET 2
#define CU_FILE_STREAM_FIXED_FILE_SIZE 4
#define CU_FILE_STREAM_PAGE_ALIGNED_INPUTS 8

/*
 * Reads or writes in the order of the stream. Arguments behind pointers are read, and *bytes_read_p is written, when
 * the stream executes the operation: bytes, or -errno. On a machine without a CUDA driver the stream must be null.
 * Errors: CU_FILE_HANDLE_NOT_REGISTERED; CU_FILE_INVALID_VALUE; CU_FILE_CUDA_DRIVER_ERROR; CU_FILE_NOMEM_ERROR.
 */
CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void* bufPtr_base, size_t* size_p, off_t* file_offset_p,
                              off_t* bufPtr_offset_p, ssize_t* bytes_read_p, CUstream stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void* bufPtr_base, size_t* size_p, off_t* file_offset_p,
                               off_t* bufPtr_offset_p, ssize_t* bytes_written_p, CUstream stream);
/* Streams need no registration. Errors: CU_FILE_INVALID_VALUE a stream that is not registered. */
CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags);
CUfileError_t cuFileStreamDeregister(CUstream stream);

/* Parameters. --------------------------------------------------------------------------------------------------- */

/* Numbers as the vendor's library 1.15 has them, seen by calling it. */
typedef enum CUFileSizeTConfigParameter_t {
    CUFILE_PARAM_PROFILE_STATS,
    CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, /* parts in flight: 1 to 4096 */
    CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,     /* of the pool that executes without io_uring: up to 256; 0: 8 */
    CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
    CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM,
    CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB,
    CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
    CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
    CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
    CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
    CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
    CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
    CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
    CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, /* false: as WEFTIO_FILE_STRICT=1 */
    CUFILE_PARAM_FORCE_COMPAT_MODE,            /* true: pread and pwrite only, without io_uring */
    CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE,
    CUFILE_PARAM_EXECUTION_PARALLEL_IO,
    CUFILE_PARAM_PROFILE_NVTX,
    CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY,
    CUFILE_PARAM_USE_PCIP2PDMA,
    CUFILE_PARAM_PREFER_IO_URING,
    CUFILE_PARAM_FORCE_ODIRECT_MODE, /* true: aligned transfers avoid the page cache though the file has no O_DIRECT */
    CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION,
    CUFILE_PARAM_STREAM_MEMOPS_BYPASS
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
    CUFILE_PARAM_LOGGING_LEVEL,
    CUFILE_PARAM_ENV_LOGFILE_PATH,
    CUFILE_PARAM_LOG_DIR
} CUFileStringConfigParameter_t;

/*
 * Parameters are set while the driver is closed, and are in force from the next cuFileDriverOpen on. Those without a
 * comment above are kept and reported, without an effect.
 * Errors: CU_FILE_INVALID_VALUE no such parameter, a null pointer, a text that is too long for `len`, or not a
 * value of the parameter; CU_FILE_DRIVER_ALREADY_OPEN set while the driver is open.
 */
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t* value);
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool* value);
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char* desc_str, int len);
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value);
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value);
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char* desc_str);
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t* min_value, size_t* max_value);
/*
 * Sizes in KiB and counts of the slabs of staging buffers, `len` of each. Kept and reported, without an effect.
 * Errors: CU_FILE_INVALID_VALUE a null pointer, or a `len` that is not positive or, for Get, not that of the last Set.
 */
CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t* size_values, const size_t* count_values, int len);
CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t* size_values, size_t* count_values, int len);

#ifdef __cplusplus
}
#endif

#endif
