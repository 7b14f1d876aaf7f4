// EAL: started behind the scenes, once a process, or adopted when the application has started it.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace weftio::detail {

/// Makes sure EAL runs. Blocks while it starts; any thread. Later calls return at once and ignore their arguments. The
/// caller keeps what is returned for as long as it needs EAL.
///
/// An EAL that runs already is the application's: it, and where it logs to, is left alone. Otherwise EAL is started in
/// memory, without a PCI scan unless `pci`, with hugepages when some are free and ordinary pages otherwise; the calling
/// thread keeps its CPU affinity. It is shut down once the process exits and nobody needs it.
/// Throws weftio::error errc::device_error with EAL's own words, errc::invalid_argument for an extra word that asks for
/// help, errc::not_supported in a child of the process in which EAL runs, errc::closed when the process exits.
///
/// @param queues  of the first port: without hugepages EAL's memory, some 50 MB for each and 512 MB at least, is what it
///                starts with
std::shared_ptr<const void> start_environment(bool pci, const std::vector<std::string>& extra_arguments,
                                              unsigned queues = 1);

/// The last lines that EAL or a driver logged as errors or warnings in this process since `forget_driver_words`, joined
/// by "; ". For error texts. Of an EAL of the application's: where they are.
std::string driver_words();
void forget_driver_words();

} // namespace weftio::detail
