/**
 * Devices: the ports that programs name by PCI address or InfiniBand name.
 *
 * A device is a Weftio port, of which the environment variable WEFTIO_DOCA_DEVICES tells (README.md, "Network
 * devices"). The port is opened when the first device is opened, and closed when nothing uses it any more.
 */
#pragma once

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_devinfo;
struct doca_devinfo_rep;
struct doca_dev_rep;

/* Sizes of the buffers that queries fill, the terminating zero included. */
#define DOCA_DEVINFO_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64
#define DOCA_DEVINFO_IFACE_NAME_SIZE 256
#define DOCA_DEVINFO_REP_VUID_SIZE 128
#define DOCA_DEVINFO_MAC_ADDR_SIZE 6
#define DOCA_DEVINFO_IPV4_ADDR_SIZE 4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE 16

enum doca_devinfo_rep_filter { DOCA_DEVINFO_REP_FILTER_ALL = 0 };

/**
 * Lists the devices. Any thread; does not block. The list may be empty: WEFTIO_DOCA_DEVICES names no device.
 *
 * @param[out] list  array of `*count` devices, to be destroyed by doca_devinfo_destroy_list(). The devices stay valid
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer; DOCA_ERROR_BAD_CONFIG an entry of
 *         WEFTIO_DOCA_DEVICES, or the file that it names, cannot be read; DOCA_ERROR_NO_MEMORY
 */
doca_error_t doca_devinfo_create_list(struct doca_devinfo ***list, uint32_t *count);
/** Destroys a list. Devices that were opened stay open. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE no such list */
doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **list);
/**
 * Whether a device has a PCI address, "0000:b5:00.0" or "b5:00.0", in letters of any case.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, no such device, or no PCI address
 */
doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo, const char *pci_address,
                                            uint8_t *is_equal);
/**
 * Copies the InfiniBand name of a device; empty if WEFTIO_DOCA_DEVICES gives none.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, no such device, or a buffer that is too small
 */
doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *name, uint32_t size);
/** The same for the name of the Linux interface; DOCA_ERROR_NOT_SUPPORTED the port is not on an interface. */
doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *name, uint32_t size);
/**
 * Copies the MAC address. Opens the port for a moment if it is not open.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, no such device, or `size` below 6; else as
 *         doca_dev_open()
 */
doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo, uint8_t *mac, uint32_t size);

/**
 * Opens a device. Blocks while the port opens, some 100 ms.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, no such device, or a port that cannot be; else why the
 *         port did not open, which the log tells: DOCA_ERROR_NOT_FOUND, DOCA_ERROR_NOT_PERMITTED, DOCA_ERROR_IN_USE,
 *         DOCA_ERROR_NOT_SUPPORTED, DOCA_ERROR_NO_MEMORY
 */
doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);
/**
 * Closes a device. What was made on it keeps the port. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE no such device
 */
doca_error_t doca_dev_close(struct doca_dev *dev);
/** The entry of the list that a device was opened from; NULL if there is no such device. */
struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/* Representors belong to DPUs. A port of Weftio has none: lists are empty. */

/** @return DOCA_SUCCESS with an empty list; DOCA_ERROR_INVALID_VALUE a null pointer, or no such device */
doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter, struct doca_devinfo_rep ***list,
                                          uint32_t *count);
/** @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE no such list */
doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **list);
/** @return DOCA_ERROR_INVALID_VALUE: there are no representors */
doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *rep, char *vuid, uint32_t size);
/** @return DOCA_ERROR_INVALID_VALUE: there are no representors */
doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *rep, const char *pci_address,
                                                uint8_t *is_equal);
/** @return DOCA_ERROR_INVALID_VALUE: there are no representors */
doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *rep, struct doca_dev_rep **dev_rep);

#ifdef __cplusplus
}
#endif
