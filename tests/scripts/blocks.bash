# The programs in our documents. Sourced, not run: . "$(dirname "$0")/blocks.bash"

# take_blocks DOCUMENT FOLDER: writes every fenced block whose first line is a comment "NAME: ..." to FOLDER/NAME, as it stands.
take_blocks() {
    mkdir -p "$2"
    FOLDER=$2 awk '
        /^```/ { at_first = inside = !inside; file = ""; next }
        at_first && match($0, /^(\/\*|\/\/|#) [A-Za-z0-9_.]+:/) {
            split($0, word, /[ :]/)
            file = ENVIRON["FOLDER"] "/" word[2]
        }
        { at_first = 0 }
        file != "" { print > file }' "$1"
}

# command_of FILE: what the first line of a file that take_blocks wrote says behind its name.
command_of() {
    sed -n '1s/^[^:]*: *//p' "$1"
}
