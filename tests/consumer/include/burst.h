/* A header that is on the include path. */
#pragma once

#define BURST 32
