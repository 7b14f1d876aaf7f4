#include "reader/playlist.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace weftio::replay {

playlist::playlist(std::vector<std::string> paths, order by, const std::atomic<bool>* stop)
    : paths_(std::move(paths)), order_(by), stop_(stop), files_(paths_.size())
{
    for (std::size_t file = 0; file < paths_.size(); ++file) {
        if (order_ == order::by_time || file == 0)
            files_[file].reader = open_capture(paths_[file], stop_);
        else if (paths_[file] != "-")
            open_source(paths_[file], stop_);
        std::error_code unknown;
        auto bytes = std::filesystem::file_size(paths_[file], unknown);
        files_[file].weight = unknown ? 0 : static_cast<double>(bytes);
    }
    if (order_ == order::by_time)
        for (std::size_t file = 0; file < paths_.size(); ++file)
            read(file);
}

bool playlist::next(item& to)
{
    return order_ == order::by_time ? next_by_time(to) : next_in_sequence(to);
}

bool playlist::next_in_sequence(item& to)
{
    while (at_ < files_.size() && open(at_)) {
        if (read(at_)) {
            to.captured = files_[at_].front;
            to.file = at_;
            to.begins_file = begins_;
            begins_ = false;
            return true;
        }
        if (at_ + 1 < files_.size())
            files_[at_].reader.reset();
        ++at_;
        begins_ = true;
    }
    return false;
}

/// Takes the oldest frame of all files. A linear search is as fast as a heap for the few files that people merge.
bool playlist::next_by_time(item& to)
{
    if (given_)
        read(at_);
    given_ = false;
    std::size_t oldest = files_.size();
    for (std::size_t file = 0; file < files_.size(); ++file)
        if (files_[file].has_front &&
            (oldest == files_.size() || files_[file].front.time_ns < files_[oldest].front.time_ns))
            oldest = file;
    if (oldest == files_.size())
        return false;
    to.captured = files_[oldest].front;
    to.file = at_ = oldest;
    to.begins_file = begins_;
    begins_ = false;
    given_ = true;
    return true;
}

bool playlist::read(std::size_t file)
{
    source& from = files_[file];
    std::int64_t before_ns = from.front.time_ns;
    from.has_front = from.reader->next(from.front);
    if (from.has_front && !from.front.has_time)
        from.front.time_ns = before_ns;                             // without a time: sent with the frame before it
    bool stopped = stop_ && stop_->load(std::memory_order_relaxed); // a stopped read looks like the end of the file
    if (from.reader->damaged() && !from.damaged && !stopped)
        from.damaged = from.reader->damaged();
    return from.has_front;
}

/// Opens a file. One that has disappeared during the run counts as damaged.
bool playlist::open(std::size_t file)
{
    if (files_[file].reader)
        return true;
    try {
        files_[file].reader = open_capture(paths_[file], stop_);
        files_[file].front.time_ns = 0;
    } catch (const open_error& error) {
        files_[file].damaged = damage{0, error.what()};
        return false;
    }
    return true;
}

bool playlist::rewind()
{
    at_ = 0;
    begins_ = true;
    given_ = false;
    for (std::size_t file = 0; file < files_.size(); ++file) {
        source& from = files_[file];
        bool wanted = order_ == order::by_time || file == 0;
        if (paths_[file] == "-" || (from.reader && wanted && !from.reader->rewind()))
            return false;
        if (!wanted)
            from.reader.reset();
        else if (!open(file))
            return false;
        from.front.time_ns = 0;
        if (order_ == order::by_time)
            read(file);
    }
    return true;
}

std::optional<double> playlist::share() const
{
    double whole = 0, done = 0;
    for (std::size_t file = 0; file < files_.size(); ++file) {
        const source& from = files_[file];
        bool ended = order_ == order::in_sequence && file < at_, ahead = order_ == order::in_sequence && file > at_;
        std::optional<double> part = ended ? 1.0 : 0.0;
        if (!ended && !ahead && from.reader)
            part = from.reader->share();
        if (from.weight == 0 || !part)
            return std::nullopt;
        whole += from.weight;
        done += from.weight * *part;
    }
    return whole == 0 ? std::nullopt : std::optional(done / whole);
}

bool playlist::any_damaged() const noexcept
{
    return std::any_of(files_.begin(), files_.end(), [](const source& each) { return each.damaged.has_value(); });
}

} // namespace weftio::replay
