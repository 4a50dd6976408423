// send and recv with tags and from any source, on the sends and receives of rondo.h, which have neither.
//
// A message is a header of fixed size, which holds its tag, its size and small data, and the data if they are larger. A rank
// asks a source for a header while it has a receive that may take a message of that source, and then receives the data into the
// tensor of the first receive that fits. If none does, the data wait in memory, so that the messages behind them get through.
// A receive from any source asks all ranks: what remains asked after it is kept for later receives.
#pragma once

#include "operation.hpp"

#include <deque>
#include <list>

namespace rondo_torch
{

class Messages
{
  public:
    static constexpr size_t INLINE_BYTES = 240;
    // Tags of the backend's own; those of users are not negative.
    static constexpr int TAG_ARRIVED = -2, TAG_RELEASED = -3;

    explicit Messages(Group &group) : group_(group)
    {
    }
    void open();
    // Starts a send of a contiguous tensor: gives the operation its requests.
    void send(const std::shared_ptr<Operation> &operation, const at::Tensor &tensor, int destination, int tag);
    // Starts a receive into a contiguous tensor, from any source if source is -1.
    void receive(const std::shared_ptr<Operation> &operation, const at::Tensor &tensor, int source, int tag);
    // Ends a receive that no message has come for with the error; false if one is coming in.
    bool cancel(const std::shared_ptr<Operation> &operation, std::exception_ptr error);
    // Whether a header or data are asked for and have not come.
    bool outstanding();

  private:
    struct Header {
        uint64_t bytes;
        int64_t tag;
        unsigned char data[INLINE_BYTES];
    };
    struct Posted {
        std::shared_ptr<Operation> operation;
        at::Tensor tensor;
        int source, tag;
    };
    struct Stored {
        int64_t tag;
        at::Tensor data;
    };
    enum State { IDLE, HEADER_ASKED, HEADER_HERE, DATA_ASKED };
    struct Source {
        State state = IDLE;
        Header header;
        rondo_request_t request = nullptr;
        std::shared_ptr<Operation> taker; // of the data that are asked for; NULL: they are stored or dropped
        at::Tensor buffer;
        std::deque<Stored> stored;
        bool drop = false;
    };
    struct Event {
        std::shared_ptr<Group> group;
        int source;
    };

    static void completed(void *event, rondo_result_t result);
    void advance(int source);                       // the request of the source is complete; on the group's thread of events
    void pump(int source);                          // does what can be done without waiting; mutex_ held
    bool ask(int source, void *data, size_t bytes); // receives; false if the call failed, and the receives have ended
    void deliver(int source);                       // gives the data in buffer to their receive, or stores them
    bool wanted(int source) const;
    void fail(int source, std::exception_ptr error); // ends the receives that wait for the source
    // The size differs: ends the operation with an error. Else false.
    bool misfit(const Posted &posted, uint64_t bytes, int source);
    std::list<Posted>::iterator match(int source, int64_t tag);

    Group &group_;
    std::mutex mutex_, sending_;
    std::vector<Source> sources_;
    std::list<Posted> posted_;
};

} // namespace rondo_torch
