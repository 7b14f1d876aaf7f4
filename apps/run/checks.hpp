// What options and variables may say.
#pragma once

#include <string>

namespace weftio::run {

// Each throws `refusal` with a sentence that begins with `name`: of the option, or of the variable that stands for it.

void check_wire(const std::string& name, const std::string& value);
void check_port(const std::string& name, const std::string& value);
/// An address of a host on a link, as rdma_device takes it.
void check_address(const std::string& name, const std::string& value);
void check_devices(const std::string& name, const std::string& value);
void check_loss(const std::string& name, const std::string& value);
void check_stale(const std::string& name, const std::string& value);
void check_doorbell_bytes(const std::string& name, const std::string& value);
void check_process(const std::string& name, const std::string& value);
/// The file is made when the devices are.
void check_dump(const std::string& name, const std::string& value);

} // namespace weftio::run
