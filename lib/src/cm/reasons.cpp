#include "cm/reasons.hpp"

#include <iterator>

namespace weftio::cm {

namespace {

constexpr const char* reject_sentences[]{
    "The peer gave a reason that no specification has.",
    "The peer has no queue pair left.",
    "The peer has no end-to-end context left.",
    "The peer has no resources left.",
    "The peer gave up waiting for an answer.",
    "The peer does not support the request.",
    "The peer does not know the communication ID.",
    "The communication IDs belong to different connections of the peer.",
    "Nobody listens on the service ID at the peer.",
    "The peer does not support the transport service type.",
    "The peer still had a connection of this queue pair and has ended it; connect again.",
    "The peer does not have the reliable datagram channel.",
    "The peer does not accept the GID as its own.",
    "The peer does not accept the LID as its own.",
    "The peer does not accept the service level.",
    "The peer does not accept the traffic class.",
    "The peer does not accept the hop limit.",
    "The peer does not accept the packet rate.",
    "The peer does not accept the GID of the alternate path as its own.",
    "The peer does not accept the LID of the alternate path as its own.",
    "The peer does not accept the service level of the alternate path.",
    "The peer does not accept the traffic class of the alternate path.",
    "The peer does not accept the hop limit of the alternate path.",
    "The peer does not accept the packet rate of the alternate path.",
    "The peer names another port and another connection manager.",
    "The peer names another port.",
    "The peer does not support the path MTU.",
    "The peer asks for more responder resources than there are.",
    "The program at the peer has rejected the connection.",
    "The peer does not accept the RNR retry count.",
    "The communication ID belongs to another connection already.",
    "The peer does not support the version of the message.",
    "The peer does not accept the flow label.",
    "The peer does not accept the flow label of the alternate path.",
};
constexpr const char* alternate_sentences[]{
    "The alternate path is loaded.",
    "The peer does not know the communication ID.",
    "The peer does not support alternate paths.",
    "The peer has rejected the alternate path.",
};
constexpr const char* service_sentences[]{
    "The peer has told its queue pair.",
    "Nobody provides the service ID at the peer.",
    "The program at the peer has rejected the request.",
    "The peer has no queue pair for the service.",
    "The peer names another port for the service.",
    "The peer does not support the version of the request.",
    "The peer gave a status that no specification has.",
};
constexpr const char* refusal_sentences[]{
    "Nothing is refused.",
    "The connection does not exist.",
    "The connection is in a state that does not allow the call.",
    "The message has a queue number, path MTU or service that no connection can have.",
    "Somebody listens on the service ID already.",
    "Nobody listens on the service ID.",
    "There are as many connections as there may be.",
};
constexpr const char* mad_sentences[]{
    "The message is well-formed.",
    "The message does not have 256 bytes.",
    "The base version of the message is not 1.",
    "The message is not of communication management.",
    "The class version of the message is not 2.",
    "The method of the message is not Send.",
    "The attribute of the message is unknown.",
};

} // namespace

const char* text_of(reject_reason reason) noexcept
{
    const auto number = static_cast<std::size_t>(reason);
    return reject_sentences[number < std::size(reject_sentences) ? number : 0];
}

const char* text_of(alternate_status status) noexcept
{
    const auto number = static_cast<std::size_t>(status);
    return alternate_sentences[number < std::size(alternate_sentences) ? number : std::size(alternate_sentences) - 1];
}

const char* text_of(service_status status) noexcept
{
    const auto number = static_cast<std::size_t>(status);
    return service_sentences[number < std::size(service_sentences) ? number : std::size(service_sentences) - 1];
}

const char* text_of(refusal why) noexcept
{
    return refusal_sentences[static_cast<std::size_t>(why)];
}

const char* text_of(mad_refusal why) noexcept
{
    return mad_sentences[static_cast<std::size_t>(why)];
}

} // namespace weftio::cm
