// EAL: started behind the scenes, once a process, or adopted when the application has started it.
#pragma once

#include <string>
#include <vector>

namespace weftio::detail {

/// Makes sure EAL runs. Blocks while it starts; any thread. Later calls return at once and ignore their arguments.
///
/// EAL is started in memory, without a PCI scan unless `pci`, with hugepages when some are free and ordinary pages
/// otherwise; the calling thread keeps its CPU affinity. It is shut down when the process exits.
/// Throws weftio::error errc::device_error with EAL's own words.
void start_environment(bool pci, const std::vector<std::string>& extra_arguments);

/// The last lines that EAL or a driver logged as errors or warnings in this process since `forget_driver_words`, joined by
/// "; ". For error texts.
std::string driver_words();
void forget_driver_words();

} // namespace weftio::detail
