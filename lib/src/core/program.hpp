// The program's name and its bundled drivers, for EAL.
#pragma once

#include <string>

namespace weftio::core {

/// The program's name as EAL's --file-prefix, which `dpdk-telemetry.py -f NAME` takes: at most 32 letters, digits, '-',
/// '_' and '.'; other characters become '_'.
std::string file_prefix();

/// Absolute path of the loaded library, or of the program, that contains EAL. Empty when the loader does not say.
std::string eal_path();

/// Loads the drivers in the folder dpdk-pmds beside the loaded EAL. A bundle has its drivers there, and its EAL
/// searches no other folder (cmake/bundle.sh). Call it before rte_eal_init. Throws weftio::error errc::device_error
/// when one cannot be loaded.
///
/// EAL's own option for this (-d) refuses folders inside a world-writable one, such as /tmp. That check protects
/// nothing here: EAL and the program have been loaded from the same folder.
void load_drivers_beside_eal();

} // namespace weftio::core
