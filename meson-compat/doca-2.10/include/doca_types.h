/** Types and flags that several headers share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h> /* programs rely on it */

/** What a program attaches to objects and tasks, and gets back in callbacks. */
union doca_data {
    void *ptr;
    uint64_t u64;
};

/** Who may do what with the memory of an mmap (doca_mmap_set_permissions). */
#define DOCA_ACCESS_FLAG_LOCAL_READ_ONLY 0u
#define DOCA_ACCESS_FLAG_LOCAL_READ_WRITE (1u << 0)
#define DOCA_ACCESS_FLAG_RDMA_READ (1u << 1)
#define DOCA_ACCESS_FLAG_RDMA_WRITE (1u << 2)
#define DOCA_ACCESS_FLAG_RDMA_ATOMIC (1u << 3)
#define DOCA_ACCESS_FLAG_PCI_READ_ONLY (1u << 4)
#define DOCA_ACCESS_FLAG_PCI_READ_WRITE (1u << 5)
#define DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING (1u << 6) /**< accepted; a software NIC writes in order */

#define DOCA_GID_BYTE_LENGTH 16
