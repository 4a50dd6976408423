// Groups: see group.hpp.
#include "group.hpp"

#include <c10/core/StreamGuard.h>

#include <cstring>
#include <set>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace rondo_torch
{

namespace
{

// The groups of this process that have been opened and not ended.
struct Registry {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::shared_ptr<Group>> groups;
    const pid_t process = getpid();
};

constexpr auto GRACE = std::chrono::seconds(2);         // from a timeout to the end of its communicator
constexpr auto OPENING_GRACE = std::chrono::seconds(5); // beyond that for the error of a runtime on the GPU that does not open
constexpr auto REPORT_AGE = std::chrono::seconds(5);    // for so long a report serves other operations too

// Never freed: threads use it until the process is gone.
Registry &registry()
{
    static Registry *only = new Registry;
    return *only;
}

} // namespace

Group::Group(int rank, int size, std::string name, std::vector<int64_t> global_ranks, Milliseconds timeout)
    : rank(rank), size(size), name(std::move(name)), global_ranks(std::move(global_ranks)), timeout(timeout), messages(*this)
{
}

std::string Group::describe(const std::string &call, rondo_result_t code, const std::string &text) const
{
    std::ostringstream out;
    out << "rondo: " << call << " on rank " << rank << " of group " << (name.empty() ? "?" : name) << ": ";
    out << (code == RONDO_SUCCESS ? "" : rondo_strerror(code)) << (text.empty() ? "" : ": ") << text;
    bool same = true;
    for (size_t i = 0; i < global_ranks.size(); i++)
        same = same && global_ranks[i] == static_cast<int64_t>(i);
    if (!same) {
        out << " (ranks of the group are, in order, the global ranks";
        for (auto global : global_ranks)
            out << ' ' << global;
        out << ")";
    }
    return out.str();
}

void Group::check(const char *call, rondo_result_t code) const
{
    if (code != RONDO_SUCCESS)
        std::rethrow_exception(backend_error(describe(call, code, rondo_last_error())));
}

void Group::make(Side &side, const rondo_unique_id_t &id, c10::Device device)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = rank;
    config.size = size;
    config.unique_id = &id;
    config.device = device.is_cuda() ? RONDO_DEVICE_CUDA : RONDO_DEVICE_HOST;
    if (device.is_cuda())
        config.device_index = device.index();
    config.timeout = 0; // the watchdog's: it has one of its own for each operation
    if (timeout.count() > 0)
        config.connect_timeout = static_cast<double>(timeout.count()) / 1000;
    check("init", rondo_init(&side.runtime, &config));
    check("init", rondo_comm_world(side.runtime, &side.world));
}

void Group::ask_for_gpu(c10::Device device)
{
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(device_.is_cpu() || device_ == device, "rondo: a tensor on ", device, " in group ", name, ", which is on ",
                device_);
    if (device_.is_cuda())
        return;
    device_ = device;
    opener_ = std::make_unique<Worker>();
    opener_->post([this] {
        try {
            open_gpu();
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex_);
            gpu_failure_ = std::current_exception();
        }
    });
}

bool Group::gpu_is_open() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (gpu_failure_)
        std::rethrow_exception(gpu_failure_);
    return gpu_.runtime != nullptr;
}

// The ranks meet on the copy, on which no collective of the user is.
void Group::open_gpu()
{
    std::lock_guard<std::mutex> opening(opening_);
    rondo_unique_id_t id;
    memset(&id, 0, sizeof id);
    rondo_result_t got = rank == 0 ? rondo_get_unique_id(&id) : RONDO_SUCCESS;
    blocking("init on a GPU", copy,
             [&](rondo_request_t *) { return rondo_bcast(id.bytes, sizeof id.bytes, RONDO_UINT8, 0, copy); });
    check("init on a GPU", got);
    Side side;
    make(side, id, device_);
    std::vector<std::string> keys;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        keys = keys_;
    }
    for (auto &key : keys)
        add_key(side, key);
    std::lock_guard<std::mutex> lock(mutex_);
    gpu_ = side;
}

void Group::add_key(Side &side, const std::string &key)
{
    rondo_comm_t comm = nullptr;
    check("register_keys", rondo_comm_dup(side.world, &comm));
    std::lock_guard<std::mutex> lock(mutex_);
    side.keys[key] = comm;
}

StreamWatch &Group::streams(c10::Device device)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (streams_)
            return *streams_;
    }
    own_stream(device); // needs Python's lock: not on a thread that an operation waits for
    std::lock_guard<std::mutex> lock(mutex_);
    if (!futures_)
        futures_ = std::make_unique<Worker>();
    if (!completions_)
        completions_ = std::make_unique<Worker>();
    if (!streams_)
        streams_ = std::make_unique<StreamWatch>();
    return *streams_;
}

void Group::open(const c10::intrusive_ptr<c10d::Store> &store)
{
    const std::string key = "rondo_unique_id";
    rondo_unique_id_t id;
    if (rank == 0) {
        check("init", rondo_get_unique_id(&id));
        store->set(key, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
    } else {
        store->wait({key}, timeout);
        const auto bytes = store->get(key);
        TORCH_CHECK(bytes.size() == sizeof id.bytes, "rondo: the store has ", bytes.size(), " bytes of an id, not ",
                    sizeof id.bytes);
        memcpy(id.bytes, bytes.data(), sizeof id.bytes);
    }
    make(host_, id, c10::kCPU);
    events_ = std::make_unique<Worker>([this] { return look(); });
    try {
        blocking("init", host_.world, [this](rondo_request_t *) { return rondo_comm_dup(host_.world, &copy); });
    } catch (...) {
        rondo_finalize(host_.runtime);
        host_.runtime = nullptr;
        throw;
    }
    messages.open();
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().groups.insert(shared_from_this());
}

void Group::check_open(const char *call) const
{
    if (closed_)
        std::rethrow_exception(backend_error(describe(call, RONDO_SUCCESS, "the group has been shut down")));
}

void Group::blocking(const char *name, rondo_comm_t comm, const std::function<rondo_result_t(rondo_request_t *)> &call)
{
    auto operation = std::make_shared<Operation>(shared_from_this(), name, timeout);
    operation->comm = comm;
    watch(operation);
    operation->block(call);
    if (operation->error)
        std::rethrow_exception(operation->error);
}

void Group::register_keys(const std::vector<std::string> &keys)
{
    check_open("register_keys");
    for (auto &key : keys) {
        TORCH_CHECK(!key.empty(), "rondo: register_keys: a key is a text that is not empty");
        {
            std::lock_guard<std::mutex> lock(mutex_);
            TORCH_CHECK(host_.keys.count(key) == 0, "rondo: register_keys: group ", name, " has the key \"", key, "\" already");
        }
        rondo_comm_t comm = nullptr;
        blocking("register_keys", host_.world, [&](rondo_request_t *) { return rondo_comm_dup(host_.world, &comm); });
        {
            std::lock_guard<std::mutex> lock(mutex_);
            host_.keys[key] = comm;
            keys_.push_back(key);
        }
        // A runtime on the GPU that was made meanwhile may have found the key.
        std::lock_guard<std::mutex> opening(opening_);
        if (gpu_.runtime != nullptr && gpu_.keys.count(key) == 0)
            add_key(gpu_, key);
    }
}

rondo_comm_t Group::collectives(const std::string &key, bool on_gpu)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const Side &side = on_gpu ? gpu_ : host_;
    if (key.empty())
        return side.world;
    auto known = side.keys.find(key);
    TORCH_CHECK(known != side.keys.end(), "rondo: group ", name, " has no key \"", key,
                "\": rondo_torch.register_keys() makes one");
    return known->second;
}

std::vector<rondo_comm_t> Group::communicators()
{
    std::vector<rondo_comm_t> all{copy};
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Side *side : {&host_, &gpu_}) {
        if (side->world != nullptr)
            all.push_back(side->world);
        for (auto &key : side->keys)
            all.push_back(key.second);
    }
    return all;
}

std::map<std::string, rondo_t> Group::runtimes() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::string, rondo_t> all{{"cpu", host_.runtime}};
    if (gpu_.runtime != nullptr)
        all["cuda"] = gpu_.runtime;
    return all;
}

std::map<std::string, std::map<std::string, uint64_t>> Group::statistics()
{
    check_open("statistics");
    std::map<std::string, std::map<std::string, uint64_t>> all;
    for (auto &entry : runtimes()) {
        rondo_stats_t of;
        check("statistics", rondo_get_stats(entry.second, &of));
        all[entry.first] = {{"submitted", of.submitted},
                            {"completed", of.completed},
                            {"preemptions", of.preemptions},
                            {"context_loads", of.context_loads},
                            {"context_saves", of.context_saves},
                            {"daemon_starts", of.daemon_starts},
                            {"daemon_quits", of.daemon_quits},
                            {"primitives", of.primitives},
                            {"bytes_sent", of.bytes_sent},
                            {"bytes_saved", of.bytes_saved},
                            {"memory_reserved", of.memory_reserved},
                            {"memory_allocated", of.memory_allocated},
                            {"memory_budget", of.memory_budget},
                            {"spin_ns", of.spin_ns}};
    }
    return all;
}

void Group::watch(const std::shared_ptr<Operation> &operation)
{
    if (operation->deadline == Clock::time_point::max())
        return;
    std::lock_guard<std::mutex> lock(mutex_);
    watched_.emplace(operation->deadline, operation);
    if (events_)
        events_->wake_at(operation->deadline);
}

void Group::unwatch(Operation *operation)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto range = watched_.equal_range(operation->deadline);
    for (auto entry = range.first; entry != range.second; ++entry) {
        auto other = entry->second.lock();
        if (!other || other.get() == operation) {
            watched_.erase(entry);
            return;
        }
    }
}

std::string Group::report()
{
    if (reported_ != Clock::time_point::min() && Clock::now() - reported_ < REPORT_AGE)
        return report_;
    std::vector<char> text(1 << 14);
    report_.clear();
    for (auto &entry : runtimes()) {
        const rondo_result_t code = rondo_report(entry.second, text.data(), text.size());
        report_ += code == RONDO_SUCCESS ? text.data() : rondo_last_error();
    }
    reported_ = Clock::now();
    return report_;
}

Clock::time_point Group::abort_expired()
{
    auto next = Clock::time_point::max();
    for (auto entry = expired_.begin(); entry != expired_.end();) {
        if (entry->second.end > Clock::now()) {
            next = std::min(next, entry->second.end);
            ++entry;
            continue;
        }
        const auto operation = entry->second.operation.lock();
        if (operation && !operation->poll())
            rondo_comm_abort(entry->first, 1);
        entry = expired_.erase(entry);
    }
    return next;
}

Clock::time_point Group::look()
{
    for (;;) {
        const auto next_abort = abort_expired();
        std::shared_ptr<Operation> operation;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (watched_.empty())
                return next_abort;
            auto first = watched_.begin();
            if (first->first > Clock::now())
                return std::min(first->first, next_abort);
            operation = first->second.lock();
            watched_.erase(first);
        }
        if (operation && !operation->poll())
            expire(operation);
    }
}

bool Group::postpone(Operation &operation)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const bool opening = gpu_.runtime == nullptr && !gpu_failure_;
    if (!operation.needs_gpu || !opening || operation.postponed)
        return false;
    operation.postponed = true;
    operation.deadline = Clock::now() + OPENING_GRACE;
    watched_.emplace(operation.deadline, operation.shared_from_this());
    return true;
}

void Group::expire(const std::shared_ptr<Operation> &operation)
{
    if (postpone(*operation))
        return;
    std::string text = "Timed out: it is not complete after " + std::to_string(operation->timeout.count()) + " ms";
    text = describe(operation->name, RONDO_ERR_TIMEOUT, text + "; " + report());
    run_abort_hooks();
    if (operation->received_by_messages && messages.cancel(operation, backend_error(text)))
        return;
    if (operation->give_up(backend_error(text)))
        return;
    operation->expire(text);
    expired_.insert({operation->comm, {Clock::now() + GRACE, operation}});
}

void Group::adopt(const std::shared_ptr<Operation> &operation)
{
    if (operation->received_by_messages || closed_)
        return; // the messages hold it
    sweep();
    std::lock_guard<std::mutex> lock(mutex_);
    adopted_.push_back(operation);
}

bool Group::sweep()
{
    std::list<std::shared_ptr<Operation>> left;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        left.swap(adopted_);
    }
    left.remove_if([](const std::shared_ptr<Operation> &operation) { return operation->poll(); });
    std::lock_guard<std::mutex> lock(mutex_);
    adopted_.splice(adopted_.end(), left);
    return adopted_.empty();
}

void Group::complete_later(std::shared_ptr<Operation> operation)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (!completions_ && !closed_)
        completions_ = std::make_unique<Worker>();
    if (completions_)
        completions_->post([operation = std::move(operation)] { operation->complete(); });
}

void Group::settle_future(c10::intrusive_ptr<c10::ivalue::Future> future, c10::Device device, std::vector<at::Tensor> outputs,
                          std::exception_ptr error)
{
    auto settle = [future, device, outputs = std::move(outputs), error] {
        // What a future's user has to wait for are the thread's current streams: one on which nothing is under way.
        c10::OptionalStreamGuard guard;
        if (device.is_cuda())
            guard.reset_stream(own_stream(device));
        if (error)
            future->setErrorIfNeeded(error);
        else
            future->markCompleted(c10::IValue(outputs));
    };
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!futures_ && !closed_)
            futures_ = std::make_unique<Worker>();
        if (futures_) {
            futures_->post(settle);
            return;
        }
    }
    settle();
}

void Group::post_event(std::function<void()> task)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (events_)
        events_->post(std::move(task));
}

void Group::set_completion_hook(int64_t number, CompletionHook hook)
{
    std::lock_guard<std::mutex> lock(hooks_mutex_);
    if (hook)
        completion_hooks_[number] = std::move(hook);
    else
        completion_hooks_.erase(number);
}

void Group::set_abort_hook(int64_t number, std::function<void()> hook)
{
    std::lock_guard<std::mutex> lock(hooks_mutex_);
    if (hook)
        abort_hooks_[number] = std::move(hook);
    else
        abort_hooks_.erase(number);
}

void Group::run_completion_hooks(uint64_t key, float duration)
{
    std::lock_guard<std::mutex> lock(hooks_mutex_);
    for (auto &hook : completion_hooks_)
        hook.second(key, duration);
}

void Group::run_abort_hooks()
{
    std::map<int64_t, std::function<void()>> hooks;
    {
        std::lock_guard<std::mutex> lock(hooks_mutex_);
        hooks = abort_hooks_;
    }
    for (auto &hook : hooks)
        hook.second();
}

void Group::abort(const std::string &)
{
    if (host_.runtime == nullptr || aborted_.exchange(true))
        return;
    run_abort_hooks();
    for (auto comm : communicators())
        rondo_comm_abort(comm, 2);
}

void Group::close()
{
    if (host_.runtime == nullptr || closed_.exchange(true) || getpid() != registry().process)
        return;
    std::thread([self = shared_from_this()] { self->end(); }).detach(); // the registry keeps count of it
}

bool Group::finalize()
{
    bool all = true;
    for (Side *side : {&gpu_, &host_})
        if (side->runtime != nullptr && rondo_finalize(side->runtime) == RONDO_ERR_STATE)
            all = false;
        else
            side->runtime = nullptr;
    return all;
}

void Group::end()
{
    auto until = timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max();
    rondo_result_t failure = RONDO_SUCCESS;
    int idle = 0;
    rondo_request_t barrier = nullptr;
    // All ranks are to come so far: then no message is on its way, and no rank needs another.
    bool agreed = !aborted_ && rondo_comm_status(host_.world, &failure, &idle) == RONDO_SUCCESS && failure == RONDO_SUCCESS &&
                  rondo_ibarrier(copy, &barrier) == RONDO_SUCCESS;
    bool swept = false;
    for (int round = 0; agreed && !(swept && barrier == nullptr); round++) {
        int done = 0;
        swept = sweep();
        if (barrier != nullptr) {
            agreed = rondo_test(barrier, &done) == RONDO_SUCCESS;
            if (done || !agreed)
                barrier = nullptr;
        }
        for (auto comm : {collectives("", false), collectives("", true)})
            if (comm != nullptr && (rondo_comm_status(comm, &failure, nullptr) != RONDO_SUCCESS || failure != RONDO_SUCCESS))
                agreed = false;
        if (abandoned_ || Clock::now() > until)
            agreed = false;
        if (round > 100)
            std::this_thread::sleep_for(std::chrono::microseconds(round > 5000 ? 1000 : 100));
    }
    if (!agreed || messages.outstanding()) {
        for (auto comm : communicators())
            if (!agreed || comm == copy)
                rondo_comm_abort(comm, 3);
        if (barrier != nullptr)
            rondo_wait(barrier);
        while (messages.outstanding()) // the error reaches each of them
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        while (!sweep())
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    opener_.reset();   // what it waits for has a bound, and its communicator has been ended if the ranks do not agree
    if (!finalize()) { // an operation whose Work is still held, and which is not complete
        for (auto comm : communicators())
            rondo_comm_abort(comm, 3);
        finalize();
    }
    std::unique_ptr<Worker> events, completions, futures;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        events.swap(events_);
        completions.swap(completions_);
        futures.swap(futures_);
    }
    events.reset();
    completions.reset(); // before the futures that it settles
    futures.reset();
    if (streams_) // its tasks may still post others
        streams_->stop();
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().groups.erase(shared_from_this());
    registry().changed.notify_all();
}

void Group::close_all(Milliseconds for_others, Milliseconds for_library)
{
    Registry &all = registry();
    if (getpid() != all.process)
        return;
    std::unique_lock<std::mutex> lock(all.mutex);
    auto groups = all.groups;
    lock.unlock();
    for (auto &group : groups)
        group->close();
    lock.lock();
    auto gone = [&all] { return all.groups.empty(); };
    if (all.changed.wait_for(lock, for_others, gone))
        return;
    for (auto &group : all.groups)
        group->abandoned_ = true;
    all.changed.wait_for(lock, for_library, gone);
}

} // namespace rondo_torch
