// What foreign.cu offers to code that the C++ compiler compiles.
#pragma once

struct foreign_game;

/// Plays the game in a kernel, and waits for its end. Returns false when CUDA refuses.
bool foreign_code_plays(foreign_game* game);
