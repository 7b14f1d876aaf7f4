// Functions of foreign.cu for C++ code.
#pragma once

struct foreign_game;

/// Runs foreign_play() in a kernel and waits for its end. Returns false if CUDA reports an error.
bool foreign_code_plays(foreign_game* game);

struct foreign_blocks {
    unsigned count, lanes;
};

/// Runs foreign_crowd_check() in one block and foreign_crowd_post() in each lane of `posters`, and waits for their end.
/// Returns false if CUDA reports an error.
bool foreign_crowd_plays(foreign_game* game, foreign_blocks posters, unsigned manner);
