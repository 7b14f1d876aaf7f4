// Functions of foreign.cu for C++ code.
#pragma once

struct foreign_game;

/// Runs foreign_play() in a kernel and waits for its end. Returns false if CUDA reports an error.
bool foreign_code_plays(foreign_game* game);
