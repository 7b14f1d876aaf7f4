/* Build files link libdoca_gpunetio_device.a. Device functions are inline in the headers, so that nothing is in it. */
extern const char weftio_doca_device_functions[];
const char weftio_doca_device_functions[] = "inline in doca_gpunetio_dev_*.cuh";
