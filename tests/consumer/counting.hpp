#pragma once

/// Whether a kernel on device `where` counted every packet of the built-in capture. Prints what it counted.
bool count_builtin(const char* where);
