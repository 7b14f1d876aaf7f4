/* A C program that is compiled against cufile.h alone: scripts/cufile.sh compiles it as C99 and as C++. */
#include <cufile.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

static void expect(int holds, const char* what)
{
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    failures += !holds;
}

static int is_ok(CUfileError_t status)
{
    if (status.err != CU_FILE_SUCCESS)
        printf("%s\n", cufileop_status_error(status.err));
    return status.err == CU_FILE_SUCCESS;
}

static void batch(CUfileHandle_t handle, char* memory)
{
    CUfileBatchHandle_t id;
    CUfileIOParams_t entry;
    CUfileIOEvents_t event;
    unsigned nr = 1;

    memset(&entry, 0, sizeof entry);
    entry.mode = CUFILE_BATCH;
    entry.u.batch.devPtr_base = memory;
    entry.u.batch.size = 8192;
    entry.fh = handle;
    entry.opcode = CUFILE_READ;
    entry.cookie = memory;
    expect(is_ok(cuFileBatchIOSetUp(&id, 1)), "set up a batch");
    expect(is_ok(cuFileBatchIOSubmit(id, 1, &entry, 0)), "submit it");
    expect(is_ok(cuFileBatchIOGetStatus(id, 1, &nr, &event, NULL)) && nr == 1, "take its event");
    expect(event.cookie == memory && event.status == CUFILE_COMPLETE && event.ret == 8192, "the event");
    cuFileBatchIODestroy(id);
}

int main(int argc, char** argv)
{
    static char memory[8192], seen[8192];
    CUfileDescr_t description;
    CUfileHandle_t handle;
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

    if (fd < 0) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    memset(memory, 'w', sizeof memory);
    memset(&description, 0, sizeof description);
    description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = fd;
    expect(is_ok(cuFileDriverOpen()), "open the driver");
    expect(is_ok(cuFileHandleRegister(&handle, &description)), "register a file");
    expect(is_ok(cuFileBufRegister(memory, sizeof memory, 0)), "register memory");
    expect(cuFileWrite(handle, memory, sizeof memory, 0, 0) == (ssize_t)sizeof memory, "write");
    expect(cuFileRead(handle, seen, sizeof seen, 0, 0) == (ssize_t)sizeof seen, "read");
    expect(memcmp(memory, seen, sizeof seen) == 0, "what was written is read");
    memset(seen, 0, sizeof seen);
    batch(handle, seen);
    expect(memcmp(memory, seen, sizeof seen) == 0, "the batch reads it too");
    expect(is_ok(cuFileBufDeregister(memory)), "deregister memory");
    cuFileHandleDeregister(handle);
    expect(cuFileRead(handle, seen, 1, 0, 0) == -CU_FILE_HANDLE_NOT_REGISTERED, "no read once it is deregistered");
    expect(is_ok(cuFileDriverClose()) && cuFileUseCount() == 0, "close the driver");
    close(fd);
    return failures != 0;
}
