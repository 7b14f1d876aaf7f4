// What EAL learns of the program that it runs in: its name, and the drivers that came with it.
#pragma once

#include <string>

namespace weftio::detail {

/// The program's name as EAL takes it for its run folder (--file-prefix): what `dpdk-telemetry.py -f NAME` asks for. At
/// most 32 letters, digits, '-', '_' and '.'; others become '_'.
std::string file_prefix();

/// Loads the drivers that lie in the folder dpdk-pmds beside the EAL that runs, as in a bundle, whose EAL looks nowhere
/// else (cmake/bundle.sh). Call it before rte_eal_init. Throws weftio::error errc::device_error when one cannot be
/// loaded.
///
/// EAL's own way to load them (-d) refuses folders under one that everybody may write to, such as /tmp. Here the EAL
/// itself and the program have come from that folder already.
void load_drivers_beside_eal();

} // namespace weftio::detail
