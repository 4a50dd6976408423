// The backend's life, its messages, and what is made of them: see backend.hpp.
#include "backend.hpp"

#include <sstream>

namespace rondo_torch
{

Backend::Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, Milliseconds timeout, std::string name,
                 std::vector<int64_t> global_ranks)
    : c10d::Backend(rank, size), group_(std::make_shared<Group>(rank, size, std::move(name), std::move(global_ranks), timeout)),
      options_(c10::make_intrusive<GroupOptions>("rondo", timeout))
{
    group_->open(store);
    init();
}

Backend::~Backend()
{
    group_->close();
}

void Backend::setTimeout(std::chrono::milliseconds timeout)
{
    group_->timeout = timeout;
    options_->timeout = timeout;
}

uint64_t Backend::getSequenceNumberForGroup()
{
    return group_->sequence;
}

void Backend::register_keys(const std::vector<std::string> &keys)
{
    group_->register_keys(keys);
}

#if RONDO_TORCH_HAS_HOOKS
void Backend::registerCompletionHook(int64_t number, c10d::CompletionHook hook)
{
    group_->set_completion_hook(number, [hook = std::move(hook)](uint64_t key, float duration) {
        c10d::CompletionHookArgs arguments;
        arguments.completionKey = key;
        arguments.duration_ms = duration;
        hook(arguments);
    });
}

void Backend::unregisterCompletionHook(int64_t number)
{
    group_->set_completion_hook(number, nullptr);
}

void Backend::registerAbortHook(int64_t number, c10d::AbortHook hook)
{
    group_->set_abort_hook(number, std::move(hook));
}

void Backend::unregisterAbortHook(int64_t number)
{
    group_->set_abort_hook(number, nullptr);
}
#endif

void Backend::abort()
{
    group_->abort("abort()");
}

void Backend::shutdown()
{
    group_->close();
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
                                                 const c10::intrusive_ptr<Options> &opts)
{
    std::vector<int64_t> global;
    int own = -1;
    for (size_t i = 0; i < ranks.size(); i++) {
        TORCH_CHECK(ranks[i] >= 0 && ranks[i] < size_, "rondo: split: ", ranks[i], " is no rank of a group of ", size_);
        if (ranks[i] == rank_)
            own = static_cast<int>(i);
        global.push_back(group_->global_ranks.empty() ? ranks[i] : group_->global_ranks[ranks[i]]);
    }
    if (own < 0)
        return nullptr;
    return c10::make_intrusive<Backend>(store, own, static_cast<int>(ranks.size()), opts ? opts->timeout : group_->timeout,
                                        opts ? opts->group_name : "", global);
}

std::shared_ptr<Operation> Backend::message(const char *call, int peer, int tag, bool sends, const at::Tensor &tensor,
                                            Milliseconds timeout)
{
    group_->check_open(call);
    auto operation = std::make_shared<Operation>(group_, call, timeout);
    operation->comm = group_->copy;
    if (sends && tensor.is_cuda()) {
        operation->device = tensor.device();
        const at::Tensor staged = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
        staged.copy_(tensor, true);
        operation->mark_stream();
        group_->watch(operation);
        operation->begin_after_stream(&group_->messages, [operation, staged, peer, tag] {
            operation->group->messages.send(operation, staged, peer, tag);
        });
        return operation;
    }
    if (sends) {
        std::lock_guard<std::mutex> lock(operation->settling);
        group_->messages.send(operation, tensor, peer, tag);
    } else {
        group_->watch(operation); // before it can be complete
        group_->messages.receive(operation, tensor, peer, tag);
    }
    if (sends)
        group_->watch(operation);
    return operation;
}

Backend::Result Backend::send(Tensors &tensors, int destination, int tag)
{
    TORCH_CHECK(tensors.size() == 1, "rondo: send: ", tensors.size(), " tensors, and not 1");
    check(tensors[0], "send");
    TORCH_CHECK(tag >= 0, "rondo: send: the tag ", tag, " is negative");
    auto operation = message("send", destination, tag, true, tensors[0].contiguous(), group_->timeout);
    return c10::make_intrusive<Work>(rank_, c10d::OpType::SEND, "rondo:send", std::optional<Tensors>(tensors), operation);
}

Backend::Result Backend::receive(Tensors &tensors, int source, int tag)
{
    const char *call = source < 0 ? "recv from any source" : "recv";
    TORCH_CHECK(tensors.size() == 1, "rondo: ", call, ": ", tensors.size(), " tensors, and not 1");
    check(tensors[0], call);
    TORCH_CHECK(tag >= 0, "rondo: ", call, ": the tag ", tag, " is negative");
    const at::Tensor tensor = tensors[0];
    const at::Tensor buffer = tensor.is_cuda()
                                  ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true))
                                  : tensor.contiguous();
    group_->check_open(call);
    auto operation = std::make_shared<Operation>(group_, call, group_->timeout);
    operation->comm = group_->copy;
    operation->outputs = tensors;
    if (!buffer.is_same(tensor))
        operation->finish = [tensor, buffer] { tensor.copy_(buffer, true); };
    if (tensor.is_cuda()) {
        operation->device = tensor.device();
        operation->mark_stream();
    }
    auto work = c10::make_intrusive<Work>(rank_, source < 0 ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV,
                                          source < 0 ? "rondo:recvAnySource" : "rondo:recv", std::optional<Tensors>(tensors),
                                          operation);
    group_->watch(operation);
    group_->messages.receive(operation, buffer, source, tag);
    return work;
}

Backend::Result Backend::recv(Tensors &tensors, int source, int tag)
{
    TORCH_CHECK(source >= 0 && source < size_, "rondo: recv: ", source, " is no rank of a group of ", size_);
    return receive(tensors, source, tag);
}

Backend::Result Backend::recvAnysource(Tensors &tensors, int tag)
{
    return receive(tensors, -1, tag);
}

// Each rank tells rank 0 that it has arrived, which so knows who has not, and then releases them.
void Backend::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
    const auto timeout = opts.timeout == c10d::kUnsetTimeout ? group_->timeout : opts.timeout;
    const auto until = Clock::now() + timeout;
    auto left = [until] {
        const auto rest = std::chrono::duration_cast<Milliseconds>(until - Clock::now());
        return std::max(rest, Milliseconds(1));
    };
    const at::Tensor token = at::zeros({1}, at::kByte);
    if (rank_ != 0) {
        auto arrived = message("monitored_barrier", 0, Messages::TAG_ARRIVED, true, token, timeout);
        auto released = message("monitored_barrier", 0, Messages::TAG_RELEASED, false, token.clone(), timeout);
        released->wait();
        if (released->error)
            std::rethrow_exception(backend_error(group_->describe(
                "monitored_barrier", RONDO_ERR_TIMEOUT,
                "Rank " + std::to_string(rank_) +
                    " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                    "Please check rank 0 logs for faulty rank.")));
        arrived->wait();
        return;
    }
    std::vector<std::shared_ptr<Operation>> arrivals;
    for (int i = 1; i < size_; i++)
        arrivals.push_back(message("monitored_barrier", i, Messages::TAG_ARRIVED, false, token.clone(), timeout));
    std::vector<int> missing;
    for (int i = 1; i < size_; i++) {
        auto &arrival = arrivals[i - 1];
        if (!arrival->wait_until(Clock::now() + left())) {
            group_->messages.cancel(arrival,
                                    backend_error("monitored_barrier: rank " + std::to_string(i) + " has not arrived"));
            arrival->wait();
        }
        if (arrival->error) {
            missing.push_back(i);
            if (!wait_all_ranks)
                break;
        }
    }
    if (missing.empty()) {
        std::vector<std::shared_ptr<Operation>> releases;
        for (int i = 1; i < size_; i++)
            releases.push_back(message("monitored_barrier", i, Messages::TAG_RELEASED, true, token, timeout));
        for (auto &release : releases)
            release->wait();
        return;
    }
    for (int i = 1; i < size_; i++) // what was not looked at
        if (!arrivals[i - 1]->done)
            group_->messages.cancel(arrivals[i - 1], backend_error("monitored_barrier: given up"));
    std::ostringstream text;
    if (wait_all_ranks) {
        text << "Ranks ";
        for (size_t i = 0; i < missing.size(); i++)
            text << (i > 0 ? ", " : "") << missing[i];
    } else
        text << "Rank " << missing[0];
    text << " failed to pass monitoredBarrier in " << timeout.count() << " ms";
    std::rethrow_exception(backend_error(group_->describe("monitored_barrier", RONDO_ERR_TIMEOUT, text.str())));
}

} // namespace rondo_torch
