// Messages with tags: see messages.hpp.
#include "messages.hpp"

#include "group.hpp"

#include <cstring>

namespace rondo_torch
{

void Messages::open()
{
    sources_ = std::vector<Source>(static_cast<size_t>(group_.size));
}

void Messages::send(const std::shared_ptr<Operation> &operation, const at::Tensor &tensor, int destination, int tag)
{
    const size_t bytes = tensor.nbytes();
    at::Tensor buffer = at::zeros({static_cast<int64_t>(sizeof(Header))}, at::kByte);
    auto *header = static_cast<Header *>(buffer.data_ptr());
    header->bytes = bytes;
    header->tag = tag;
    if (bytes > 0 && bytes <= INLINE_BYTES)
        memcpy(header->data, tensor.const_data_ptr(), bytes);
    operation->buffers.push_back(buffer);
    operation->buffers.push_back(tensor);
    rondo_request_t request = nullptr;
    std::lock_guard<std::mutex> lock(sending_); // a header and its data are not torn apart
    rondo_result_t code = rondo_isend(header, sizeof(Header), RONDO_UINT8, destination, group_.copy, &request);
    if (code == RONDO_SUCCESS) {
        operation->requests.push_back(request);
        if (bytes > INLINE_BYTES) {
            code = rondo_isend(tensor.const_data_ptr(), bytes, RONDO_UINT8, destination, group_.copy, &request);
            if (code == RONDO_SUCCESS)
                operation->requests.push_back(request);
        }
    }
    if (code != RONDO_SUCCESS) {
        auto error = operation->failure_of(code);
        if (!operation->requests.empty()) // a header without its data: the communicator has failed, or must
            group_.abort("a send could not be started");
        std::rethrow_exception(error);
    }
}

void Messages::receive(const std::shared_ptr<Operation> &operation, const at::Tensor &tensor, int source, int tag)
{
    operation->received_by_messages = true;
    operation->buffers.push_back(tensor);
    std::lock_guard<std::mutex> lock(mutex_);
    const int first = source < 0 ? 0 : source, last = source < 0 ? group_.size - 1 : source;
    for (int i = first; i <= last; i++) {
        auto &stored = sources_[i].stored;
        for (auto message = stored.begin(); message != stored.end(); ++message) {
            if (message->tag != tag)
                continue;
            const uint64_t bytes = message->data.nbytes();
            if (!misfit({operation, tensor, source, tag}, bytes, i)) {
                if (bytes > 0)
                    memcpy(tensor.data_ptr(), message->data.const_data_ptr(), bytes);
                operation->source = i;
                operation->conclude(nullptr);
            }
            stored.erase(message);
            return;
        }
    }
    posted_.push_back({operation, tensor, source, tag});
    for (int i = first; i <= last; i++)
        if (i != group_.rank || source >= 0)
            pump(i);
}

bool Messages::cancel(const std::shared_ptr<Operation> &operation, std::exception_ptr error)
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto posted = posted_.begin(); posted != posted_.end(); ++posted)
        if (posted->operation == operation) {
            posted_.erase(posted);
            operation->conclude(error);
            return true;
        }
    return operation->done;
}

bool Messages::outstanding()
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto &source : sources_)
        if (source.state == HEADER_ASKED || source.state == DATA_ASKED)
            return true;
    return false;
}

bool Messages::wanted(int source) const
{
    for (auto &posted : posted_)
        if (posted.source == source || posted.source < 0)
            return true;
    return false;
}

std::list<Messages::Posted>::iterator Messages::match(int source, int64_t tag)
{
    auto posted = posted_.begin();
    while (posted != posted_.end() && !((posted->source == source || posted->source < 0) && posted->tag == tag))
        ++posted;
    return posted;
}

bool Messages::misfit(const Posted &posted, uint64_t bytes, int source)
{
    if (bytes == posted.tensor.nbytes())
        return false;
    posted.operation->conclude(
        backend_error(group_.describe(posted.operation->name, RONDO_ERR_MISMATCH,
                                      "rank " + std::to_string(source) + " has sent " + std::to_string(bytes) +
                                          " bytes, and the tensor has " + std::to_string(posted.tensor.nbytes()))));
    return true;
}

void Messages::fail(int source, std::exception_ptr error)
{
    for (auto posted = posted_.begin(); posted != posted_.end();)
        if (posted->source == source || posted->source < 0) {
            posted->operation->conclude(error);
            posted = posted_.erase(posted);
        } else
            ++posted;
}

void Messages::completed(void *argument, rondo_result_t)
{
    std::unique_ptr<Event> event(static_cast<Event *>(argument));
    auto group = event->group;
    group->post_event([group, source = event->source] { group->messages.advance(source); });
}

bool Messages::ask(int source, void *data, size_t bytes)
{
    Source &from = sources_[source];
    rondo_result_t code = rondo_irecv(data, bytes, RONDO_UINT8, source, group_.copy, &from.request);
    if (code == RONDO_SUCCESS) {
        auto *event = new Event{group_.shared_from_this(), source};
        code = rondo_request_callback(from.request, completed, event);
        if (code == RONDO_SUCCESS)
            return true;
        delete event;
    }
    auto error = backend_error(group_.describe("recv", code, rondo_last_error()));
    from.state = IDLE;
    if (from.taker)
        from.taker->conclude(error);
    from.taker = nullptr;
    fail(source, error);
    return false;
}

void Messages::deliver(int source)
{
    Source &from = sources_[source];
    const at::Tensor data = std::move(from.buffer);
    const auto taker = std::move(from.taker);
    from.buffer = at::Tensor();
    from.taker = nullptr;
    if (taker) {
        taker->source = source;
        taker->conclude(nullptr);
        return;
    }
    if (from.drop)
        return;
    auto posted = match(source, from.header.tag); // a receive that has come after the data were asked for
    if (posted == posted_.end()) {
        from.stored.push_back({from.header.tag, data});
        return;
    }
    if (!misfit(*posted, data.nbytes(), source)) {
        if (data.nbytes() > 0)
            memcpy(posted->tensor.data_ptr(), data.const_data_ptr(), data.nbytes());
        posted->operation->source = source;
        posted->operation->conclude(nullptr);
    }
    posted_.erase(posted);
}

void Messages::pump(int source)
{
    Source &from = sources_[source];
    for (;;) {
        if (from.state == IDLE) {
            if (!wanted(source))
                return;
            from.state = HEADER_ASKED;
            ask(source, &from.header, sizeof from.header);
            return;
        }
        if (from.state != HEADER_HERE || !wanted(source))
            return;
        const uint64_t bytes = from.header.bytes;
        auto posted = match(source, from.header.tag);
        from.taker = nullptr;
        from.drop = false;
        if (posted != posted_.end()) {
            from.drop = misfit(*posted, bytes, source);
            if (!from.drop) {
                from.taker = posted->operation;
                from.buffer = posted->tensor;
            }
            posted_.erase(posted);
        }
        if (!from.taker)
            from.buffer = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
        if (bytes > INLINE_BYTES) {
            from.state = DATA_ASKED;
            ask(source, from.buffer.data_ptr(), bytes);
            return;
        }
        if (bytes > 0)
            memcpy(from.buffer.data_ptr(), from.header.data, bytes);
        from.state = IDLE;
        deliver(source);
    }
}

void Messages::advance(int source)
{
    std::lock_guard<std::mutex> lock(mutex_);
    Source &from = sources_[source];
    const rondo_result_t code = rondo_wait(from.request); // it is complete
    from.request = nullptr;
    if (code != RONDO_SUCCESS) {
        auto error = backend_error(group_.describe("recv", code, rondo_last_error()));
        if (from.taker)
            from.taker->conclude(error);
        from.taker = nullptr;
        from.buffer = at::Tensor();
        from.state = IDLE;
        fail(source, error);
        return;
    }
    if (from.state == HEADER_ASKED)
        from.state = HEADER_HERE;
    else {
        from.state = IDLE;
        deliver(source);
    }
    pump(source);
}

} // namespace rondo_torch
